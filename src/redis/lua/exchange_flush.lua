-- exchange_flush: part of exchange.lua: ends what is to be ended before anything else is done, as that may be to the same lock.
if n_ended > 0 then
    stale = stale or {}
    for k = 1, n_ended do
        stale[ended[k]] = true
    end
    --@ exchange_end.lua
end
