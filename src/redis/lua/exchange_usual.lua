-- exchange_usual: part of exchange.lua: serves item i when what is expected is there, and nothing else is to be minded.
if hold == '-' then
    if not texts then
        texts = call('MGET', unpack(KEYS))
    end
    local held, key = texts[i], KEYS[i]
    if held and find(held, wish, 1, true) == 1 and not (stale and stale[key]) then
        done, n_ended = true, n_ended + 1
        if n_ended == 1 then -- nearly always the only one: the tables need not grow
            changes, ended, lines = true, {key}, {key .. ':line'}
        else
            ended[n_ended], lines[n_ended] = key, key .. ':line'
        end
    end
elseif hold == '' then
    if wish == 'free' then
        done = not pcall('GET', KEYS[i])
    else
        texts = texts or call('MGET', unpack(KEYS))
        local held, asks = texts[i], wish:match('^t (op=%S+ )$')
        if held and find(held, asks or wish, 1, true) == 1 and not (stale and stale[KEYS[i]]) then
            done, left = not asks, asks and math.max(0, call('PTTL', KEYS[i]))
        end
    end
elseif #wish > LEASE_DIGITS then
    local lease, asks = wish:match('^lease=(%d+) (op=%S+ )$')
    texts = texts or call('MGET', unpack(KEYS))
    --@ exchange_flush.lua
    local held, key = texts[i], KEYS[i]
    if lease and held and find(held, asks, 1, true) == 1 and not (stale and stale[key]) and
        hold:match(TOKEN) == held:match(TOKEN) and
        (lease == '0' and pcall('SET', key, hold, 'KEEPTTL') or pcall('SET', key, hold, 'PX', lease)).ok then
        done, changes, stale = true, true, stale or {}
        stale[key] = true
    end
else
    if not base then
        --@ acquire_token.lua
    end
    if raise and above then
        hold = raise(hold, above)
    end
    if above and not pcall('SET', KEYS[i], hold, 'NX', 'GET', 'PX', wish) then
        done, taken = true, true
        if names then
            count(i, hold)
        end
    end
end
