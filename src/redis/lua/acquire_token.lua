-- acquire_token: part of acquire.lua and exchange.lua, which declare what it sets: how far the token of each item is above its
-- floor. `names` are those of the counters.
--
-- A token is at least the floor, and above all that its counter and `base` have counted. The floors of a call ascend. One
-- master alone has one counter: there all tokens of a call are above their floors by the same, `above`, and the counter goes
-- to the last of them, whether it was given or not. For a quorum each item has its counter. Nearly always all floors are above
-- all counters: `above` is 0. When it is nil, each item is so far above its floor as its own counter demands.
base, above, base_after = master[3] or '0', 0, HIGHEST
if names then
    counter_of, last_of, counted = {}, {}, {}
    for name in names:gmatch('%S+') do
        counter_of[#counter_of + 1] = name
    end
    local last = call('HMGET', 'holdfast:master', unpack(counter_of))
    for i = 1, n do
        last_of[counter_of[i]] = math.max(last[i] or 0, base)
        above = above and LOWEST - last_of[counter_of[i]] > 0 and 0 or nil
    end
    count = function(i, hold)
        local name, token = counter_of[i], hold:match(TOKEN)
        last_of[name], counted[#counted + 1], counted[#counted + 2] = token, name, token
    end
elseif LOWEST - base <= 0 then
    above = base - LOWEST + 1
    base_after = string.format('%.0f', HIGHEST + above)
end
if above ~= 0 then
    raise = function(hold, by)
        local from, to, token = hold:find(TOKEN)
        return hold:sub(1, from) .. 'token=' .. string.format('%.0f', token + by) .. hold:sub(to)
    end
end
