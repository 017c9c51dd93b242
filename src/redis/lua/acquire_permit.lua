-- acquire_permit: part of acquire.lua: a lock as one of n permits.
local permit = {}

function permit.part(w)
    return 's:' .. w.mode
end

-- Answers an owner who has permit `own` already. Returns nil when it is given up, or is the one that he asks for.
local function own_permit(w, own)
    local hold = hold_key(w.key, 's:' .. own)
    local held = read(hold)
    if not held then
        return ACQUIRE_SAME_OWNER, left(call('PTTL', hold))
    end
    local code, value = refusal(w, hold, held)
    if code then
        return code, value
    elseif own ~= w.mode then -- a try that came late
        forget_permit(w.key, 's:' .. own)
        call('DEL', hold)
        call('ZREM', w.key .. ':shares', 's:' .. own)
    end
end

-- Returns the permit behind i that is free.
local function free_permit(key, i, limit)
    repeat
        i = (i + 1) % limit
    until not call('ZSCORE', key .. ':shares', 's:' .. limit .. ':' .. i)
    return i
end

function permit.judge(w)
    local key, alone = w.key, look(w.key)
    if alone and not alone:match(OP) then
        return ACQUIRE_FOREIGN, 0
    end
    local live, in_use, held = shares(key), limit_of(key), read(hold_key(key, permit.part(w)))
    local code, value = repeated(w, held)
    if code then
        return code, value
    elseif alone then
        return ACQUIRE_OTHER_KIND, IN_USE_EXCLUSIVE
    end
    local limit, i = w.mode:match('^(%d+):(%d+)$')
    limit, i = tonumber(limit), tonumber(i)
    if live > 0 and in_use ~= limit then
        return ACQUIRE_OTHER_KIND, in_use or IN_USE_SHARED
    end
    local replaces = held and held.op == w.prev
    local own = call('GET', permit_key(key, w.owner))
    if own and not (own == w.mode and replaces) then
        code, value = own_permit(w, own)
        if code or own == w.mode then
            return code, value
        end
        live = live - 1
    end
    if not held or replaces then
        return
    elseif live >= limit then
        return ACQUIRE_HELD, left(call('ZRANGE', key .. ':shares', 0, 0, 'WITHSCORES')[2] - now)
    end
    return ACQUIRE_OTHER_PERMIT, free_permit(key, i, limit)
end

-- A repeat of the release of `prev`, which comes behind, is answered as what it is: hence the tombstone.
function permit.end_prev(w)
    local held = w.tomb ~= '0' and look(hold_key(w.key, permit.part(w)))
    if held and held:match(OP) == w.prev then
        bury(w.key, w.prev, 'released', w.tomb)
    end
    forget_permit(w.key, permit.part(w))
end
