-- call_up: part of the scripts that set a lock free. Calls up the first ticket in the line: takes it out and publishes
-- "<ticket> <key>" on the channel holdfast:wake:<broker>. A ticket whose broker does not listen any more is passed over.
-- A numbered ticket then has TURN_MS for its turn, in which no other numbered ticket gets the lock.
local TURN_MS = 500

local function call_up(key)
    local ticket = redis.call('LPOP', key .. ':line')
    while ticket do
        local broker, number = ticket:match('^([^/]*)(/?)')
        if redis.call('PUBLISH', 'holdfast:wake:' .. broker, ticket .. ' ' .. key) > 0 then
            if number == '/' then
                redis.call('ZADD', key .. ':turn', string.format('%.0f', now + TURN_MS), ticket)
                redis.call('PEXPIRE', key .. ':turn', TURN_MS)
            end
            return
        end
        ticket = redis.call('LPOP', key .. ':line')
    end
end
