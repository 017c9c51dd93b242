-- call_up: part of the scripts that set a lock free. The first ticket in the line is taken out of it, and a message
-- "<ticket> <key>" goes to the channel holdfast:wake:<broker>. One that nobody listens to any more is passed over.
-- A numbered ticket has half a second for its turn, in which no other numbered one that has not been called gets the lock.
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
