-- acquire_reader: part of acquire.lua: a lock as one reader among others.
local reader = {}

function reader.part(w)
    return 'r:' .. w.owner
end

-- Is the broker of this ticket there? It hears this, and it means nothing to it.
local function is_there(ticket)
    return call('PUBLISH', 'holdfast:wake:' .. ticket:match('^[^/]*'), '') > 0
end

-- Takes the first tickets out of the line whose brokers do not listen any more, as when they are called up (call_up.lua): while
-- there are readers nobody may be called up for long. Then calls up who has stood behind them.
local function pass_over_dead(w)
    local line, passed = w.key .. ':line', false
    local first = call('LINDEX', line, 0)
    while first and first ~= w.ticket and not is_there(first) do
        call('LPOP', line)
        first, passed = call('LINDEX', line, 0), true
    end
    if passed and first then
        call_up(w.key)
    end
    return first
end

-- Does somebody stand in the line before this one? A broker's ticket may stand there for another one of its waiters.
local function is_behind_others(w)
    local first = pass_over_dead(w)
    return first and not (first == w.ticket and is_numbered(first))
end

function reader.judge(w)
    local hold, alone = hold_key(w.key, reader.part(w)), read(w.key)
    if alone and not alone.op then
        return ACQUIRE_FOREIGN, 0
    end
    local live, limit, own = shares(w.key), limit_of(w.key), read(hold)
    local code, value = repeated(w, own)
    if own and not code then
        code, value = refusal(w, hold, own)
    end
    if code then
        return code, value
    elseif alone and alone.op ~= w.prev and alone.owner ~= w.owner then
        return ACQUIRE_HELD, left(call('PTTL', w.key))
    elseif limit then
        return ACQUIRE_OTHER_KIND, limit
    elseif live > 0 and w.place ~= 'front' and is_behind_others(w) then
        return ACQUIRE_HELD, 0 -- one of them may want it alone: readers who come later do not overtake him
    end
    return nil, nil, alone and alone.owner == w.owner
end

function reader.end_prev(w)
    local alone = look(w.key)
    if alone and alone:match(OP) == w.prev then
        call('DEL', w.key)
    end
end
