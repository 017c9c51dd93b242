-- exchange_end: part of exchange.lua: deletes what has been ended, and calls up who waits for it. A broker never ends a lock
-- twice in one call: nothing would say which of the two has ended it.
if n_ended > 0 then
    is_twice = call('DEL', unpack(ended)) < n_ended or is_twice
    if call('EXISTS', unpack(lines)) > 0 then
        --@ call_up.lua
        for k = 1, n_ended do
            local line = call('LLEN', lines[k])
            if line > 0 and names then
                waiting = waiting or {}
                waiting[ended[k]] = line
            elseif line > 0 then
                call_up(ended[k])
            end
        end
    end
    n_ended = 0
end
