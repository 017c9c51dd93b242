-- call_up: part of the scripts that set a lock free. Calls up the first ticket in the line: takes it out and publishes
-- "<ticket> <key>" on the channel holdfast:wake:<broker>. A ticket whose broker does not listen any more is passed over.
-- A numbered ticket then has TURN_MS for its turn, in which no other numbered ticket gets the lock. Until it has got it nobody
-- else is called up, but this one again; except that of permits several can have their turn at once: their numbers, which are
-- to the base 36, are odd.
local TURN_MS = 500

-- Takes out of the line whom there is to call up.
local function next_in_line(turns, line)
    redis.call('ZREMRANGEBYSCORE', turns, '-inf', string.format('%.0f', now))
    for _, ticket in ipairs(redis.call('ZRANGE', turns, 0, -1)) do
        if ticket:match('/%w*[02468acegikmoqsuwy]$') then
            redis.call('LREM', line, 1, ticket)
            return ticket
        end
    end
    return redis.call('LPOP', line)
end

local function call_up(key)
    local turns, line = key .. ':turn', key .. ':line'
    local ticket = next_in_line(turns, line)
    while ticket do
        local broker, number = ticket:match('^([^/]*)(/?)')
        if redis.call('PUBLISH', 'holdfast:wake:' .. broker, ticket .. ' ' .. key) > 0 then
            if number == '/' then
                redis.call('ZADD', turns, string.format('%.0f', now + TURN_MS), ticket)
                redis.call('PEXPIRE', turns, TURN_MS)
            end
            return
        end
        redis.call('ZREM', turns, ticket)
        ticket = next_in_line(turns, line)
    end
end
