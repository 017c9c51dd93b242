-- exchange_usual: part of exchange.lua: serves item i when what is expected is there, and nothing else is to be minded.
if hold == '-' then
    texts = texts or call('MGET', unpack(KEYS))
    local held = texts[i]
    if held and find(held, wish, 1, true) == 1 then
        if n_ended == 0 then
            changes, ended, lines = true, {}, {}
        end
        done, n_ended = true, n_ended + 1
        ended[n_ended], lines[n_ended] = KEYS[i], KEYS[i] .. ':line'
    end
elseif hold == '' then
    if wish == 'free' then
        done = not pcall('GET', KEYS[i])
    else
        texts = texts or call('MGET', unpack(KEYS))
        local held, asks = texts[i], wish:match('^t (op=%S+ )$')
        done = held and find(held, asks or wish, 1, true) == 1
        if done and asks then
            done, left = false, math.max(0, call('PTTL', KEYS[i]))
        end
    end
elseif #wish > LEASE_DIGITS then
    local lease, asks = wish:match('^lease=(%d+) (op=%S+ )$')
    if lease then
        --@ exchange_end.lua
        local held = call('MGET', KEYS[i])[1]
        if held and find(held, asks, 1, true) == 1 and hold:match(TOKEN) == held:match(TOKEN) then
            done = pcall('SET', KEYS[i], hold, 'PX', lease).ok
            changes, texts = changes or done, nil
        end
    end
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
