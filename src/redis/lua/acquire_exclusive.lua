-- acquire_exclusive: part of acquire.lua: the lock as a whole.
local exclusive = {}

function exclusive.part()
    return '-'
end

-- Answers one who wants the lock alone while there are shares.
local function shared_by(w)
    local shares_set = w.key .. ':shares'
    local live = shares(w.key)
    if live == 0 then
        return
    end
    local limit = limit_of(w.key)
    if limit then
        return ACQUIRE_OTHER_KIND, limit
    end
    local is_reader = call('ZSCORE', shares_set, 'r:' .. w.owner)
    if is_reader and live == 1 then
        return nil, nil, true
    elseif is_reader then
        local other = call('GET', w.key .. ':upgrade')
        if other and other ~= w.owner and call('ZSCORE', shares_set, 'r:' .. other) then
            return ACQUIRE_DEADLOCK, 0
        elseif w.ticket ~= '-' then
            call('SET', w.key .. ':upgrade', w.owner, 'PX', 2000) -- while he asks again and again
        end
    end
    return ACQUIRE_HELD, left(call('ZREVRANGE', shares_set, 0, 0, 'WITHSCORES')[2] - now)
end

function exclusive.judge(w)
    local held = read(w.key)
    if held and not held.op then
        return ACQUIRE_FOREIGN, 0
    elseif held and held.op == w.op then
        return repeated(w, held)
    elseif held and held.op ~= w.prev then
        local code, value = refusal(w, w.key, held)
        if code then
            return code, value
        end
    end
    if not rare then
        return
    end
    local code, value = repeated(w)
    if code then
        return code, value
    end
    return shared_by(w)
end

function exclusive.end_prev()
end
