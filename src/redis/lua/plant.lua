-- plant: puts a hold that is known to have its majority elsewhere on this server too, where it is missing
-- and the lock is free. Its answer is never a vote. Also works while the server is in quarantine.
--
-- KEYS   one lock an item
-- ARGV   deadline call broker; then an item: op owner token count seq lease counter maxhold part
--          maxhold as in acquire.lua, part as in release.lua
-- Reply  {time, call, code, ...}:  1 planted, or there already   0 taken, or op is gone
-- Twice  the same op again changes nothing.
--@ call.lua
--@ hold.lua
--@ rare.lua
--@ shares.lua
local WIDTH = 9

-- Does somebody hold it in a way that cannot be at the same time?
local function is_taken(key, owner, part)
    local held, kind = read(key), part:byte()
    if held and (kind ~= 114 or held.owner ~= owner) then -- r
        return true
    end
    local n = shares(key)
    if n == 0 then
        return false
    elseif kind == 115 then -- s
        return limit_of(key) ~= tonumber(part:match('^s:(%d+):'))
    elseif limit_of(key) then
        return true
    end
    return kind ~= 114 and not (n == 1 and redis.call('ZSCORE', key .. ':shares', 'r:' .. owner))
end

local reply = {now, CALL}
for i = 1, #KEYS do
    local key, a = KEYS[i], 3 + (i - 1) * WIDTH
    local op, owner, token, lease = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 6]
    local counter, maxhold, part = ARGV[a + 7], ARGV[a + 8], ARGV[a + 9]
    local hold = hold_key(key, part)
    local held = look(hold)
    local code = held and held:match(OP) == op and 1 or 0
    if not held and not is_taken(key, owner, part) and redis.call('EXISTS', gone_key(key, op)) == 0 then
        code = 1
        local ends = maxhold == '0' and '0' or string.format('%.0f', now + tonumber(maxhold))
        redis.call('SET', hold, hold_text(op, token, ARGV[a + 4], ARGV[a + 5], lease, ends, '0', owner), 'PX', lease)
        if part ~= '-' then
            enter_share(key, part, owner, lease, true)
        end
        local last = tonumber(redis.call('HGET', 'holdfast:master', counter)) or 0
        if last < tonumber(token) then
            redis.call('HSET', 'holdfast:master', counter, token)
        end
    end
    reply[#reply + 1] = code
end
return reply
