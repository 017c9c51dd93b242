-- release: ends holds; also the undo of an acquire. By operation, never by owner alone: it frees what that
-- very operation took and nothing else. Always allowed, also late and in quarantine.
--
-- KEYS   one lock an item
-- ARGV   (unused) call; then an item: op tomb ticket
--          tomb   ms for which op is remembered as gone, so that a late copy of the request that
--                 creates it finds the way shut, and a repeat of this one gets the same answer; 0: it is not
--          ticket of one who lets others go first and lines up behind them (see acquire.lua); "-": nobody
-- The first ticket in the line is called up: taken out of it, and a message "<ticket> <key>" goes to the channel
-- holdfast:wake:<broker>. One that nobody listens to any more is passed over. A numbered ticket has half a second
-- for its turn, in which no other numbered one gets the lock.
-- Reply  {time, call, code, ...}:  1 released   0 nothing was there   -1 there under another operation
-- Twice  the same answer, as long as it is remembered
local WIDTH = 3

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
    local key, a = KEYS[i], 2 + (i - 1) * WIDTH
    local op, tomb = ARGV[a + 1], ARGV[a + 2]
    local held = redis.pcall('HGET', key, 'op')
    local code = 0
    if held == op then
        code = 1
        redis.call('DEL', key)
        if ARGV[a + 3] ~= '-' then
            redis.call('RPUSH', key .. ':line', ARGV[a + 3])
            redis.call('PEXPIRE', key .. ':line', 60000)
        end
        call_up(key)
    elseif redis.call('GET', key .. ':gone:' .. op) == 'released' then
        code = 1
    elseif held then
        code = -1
    end
    if code == 1 and tomb ~= '0' then
        redis.call('SET', key .. ':gone:' .. op, 'released', 'PX', tomb)
    elseif tomb ~= '0' then
        redis.call('SET', key .. ':gone:' .. op, '', 'PX', tomb, 'NX')
    end
    reply[#reply + 1] = code
end
return reply
