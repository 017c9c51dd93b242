-- acquire_turn: part of acquire.lua: whose turn it is, and what becomes of tickets.

local function is_numbered(ticket)
    return ticket:find('/', 1, true) ~= nil
end

-- Does this server decide whether it is the item's turn?
local function is_judged(w)
    return is_numbered(w.ticket) and (w.judge == '-' or w.judge == RUN_ID)
end

-- Is it the turn of this numbered ticket? When it is nobody's turn, the first in the line is called up.
local function is_turn(key, ticket)
    local turns = key .. ':turn'
    call('ZREMRANGEBYSCORE', turns, '-inf', string.format('%.0f', now))
    if call('ZSCORE', turns, ticket) then
        return true
    elseif call('ZCARD', turns) > 0 then
        return false
    end
    local first = call('LINDEX', key .. ':line', 0)
    if not first or first == ticket then
        return true
    end
    call_up(key)
    return call('ZSCORE', turns, ticket)
end

-- Takes the ticket of an item that has been taken out of the line; lines up the ticket of one that is held. Returns how many
-- stand in the line, without the ticket that has just lined up; 0 for an item with neither ticket nor `prev`.
local function settle_ticket(w)
    if w.ticket == '-' and w.prev == '-' then
        return 0
    end
    local line = w.key .. ':line'
    local length = call('LLEN', line)
    if w.ticket == '-' then
        return length
    end
    if w.code == ACQUIRE_TAKEN then
        if is_numbered(w.ticket) then
            call('ZREM', w.key .. ':turn', w.ticket)
        end
        if length > 0 then
            length = length - call('LREM', line, is_numbered(w.ticket) and 1 or 0, w.ticket)
        end
    elseif w.code == ACQUIRE_HELD then
        line_up(w.key, w.ticket, w.place)
    end
    return length
end
