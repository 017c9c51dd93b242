-- exchange_usual: part of exchange.lua: serves item i when what is expected is there, and nothing else is to be minded.
if expect ~= 'free' then
    local held, op, token = pcall('GET', KEYS[i]), nil, nil
    if type(held) == 'string' then
        op, token = held:match('^op=(%S+) token=(%d+) ')
    end
    if op ~= expect then
        op = nil -- general() says what is there
    elseif hold == '' then
        code = EXCHANGE_DONE
        left = wish == 't' and math.max(0, call('PTTL', KEYS[i])) or 0
    elseif hold == '-' then
        call('DEL', KEYS[i])
        code = EXCHANGE_DONE
        local line = call('LLEN', KEYS[i] .. ':line')
        if line > 0 and names then
            left = line
        elseif line > 0 then
            --@ call_up.lua
            call_up(KEYS[i])
        end
    elseif hold:match(TOKEN) == token then
        call('SET', KEYS[i], hold, 'PX', wish)
        code = EXCHANGE_DONE
    end
elseif hold == '' then
    code = not pcall('GET', KEYS[i]) and EXCHANGE_DONE or nil
elseif above then
    if above > 0 then
        hold = raise(hold, above)
    end
    if not pcall('SET', KEYS[i], hold, 'NX', 'GET', 'PX', wish) then
        code, value, taken = EXCHANGE_DONE, above, true
        if names then
            count(i, hold)
        end
    end
end
