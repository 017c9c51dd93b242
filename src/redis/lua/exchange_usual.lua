-- exchange_usual: part of exchange.lua: serves item i when what is expected is there, and nothing else is to be minded.
local expect = ARGV[last - 2]
if expect == 'free' then
    if hold == '' then
        done = not pcall('GET', KEYS[i])
    elseif above then
        if raise then
            hold = raise(hold, above)
        end
        if not pcall('SET', KEYS[i], hold, 'NX', 'GET', 'PX', wish) then
            done, taken = true, true
            if names then
                count(i, hold)
            end
        end
    end
else
    local held
    if #hold > 1 then
        --@ exchange_end.lua
        held = call('MGET', KEYS[i])[1]
    else
        texts = texts or call('MGET', unpack(KEYS))
        held = texts[i]
    end
    if not held or find(held, 'op=' .. expect .. ' ', 1, true) ~= 1 then
        held = nil -- general() says what is there
    elseif hold == '-' then
        if n_ended == 0 then
            changes, ended, lines = true, {}, {}
        end
        done, n_ended = true, n_ended + 1
        ended[n_ended], lines[n_ended] = KEYS[i], KEYS[i] .. ':line'
    elseif hold ~= '' then
        if hold:match(TOKEN) == held:match(TOKEN) and pcall('SET', KEYS[i], hold, 'PX', wish).ok then
            done, changes = true, true
        end
    elseif wish == 't' then
        left = math.max(0, call('PTTL', KEYS[i]))
    else
        done = true
    end
end
