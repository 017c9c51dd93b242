-- pass: gives back a turn that is not wanted. Takes a ticket out of the line of a lock; when the lock is free, the
-- first of those who are left is called up (see release.lua).
--
-- KEYS   one lock an item
-- ARGV   (unused) call; then an item: ticket    ("-": none is to be taken out)
-- Reply  {time, call, code, ...}:  1 the lock is free   0 it is held
-- Twice  the same again may call up one more, who then finds the lock free or asks again later.
local WIDTH = 1

local function call_up(key)
    local ticket = redis.call('LPOP', key .. ':line')
    while ticket do
        local broker, number = ticket:match('^([^/]*)(/?)')
        if redis.call('PUBLISH', 'holdfast:wake:' .. broker, ticket .. ' ' .. key) > 0 then
            if number == '/' then
                redis.call('SET', key .. ':turn', ticket, 'PX', 500)
            end
            return
        end
        ticket = redis.call('LPOP', key .. ':line')
    end
end

local clock = redis.call('TIME')
local reply = {clock[1] * 1000 + math.floor(clock[2] / 1000), tonumber(ARGV[2])}
for i = 1, #KEYS do
    local key, ticket = KEYS[i], ARGV[3 + (i - 1) * WIDTH]
    local code = 1 - redis.call('EXISTS', key)
    if ticket ~= '-' then
        redis.call('LREM', key .. ':line', 0, ticket)
    end
    if code == 1 then
        call_up(key)
    end
    reply[#reply + 1] = code
end
return reply
