-- pass: gives back a turn that is not wanted, or calls up whose turn it is. Takes a ticket out of the line of a lock;
-- when nobody has the lock alone, the first of those who are left is called up (see call_up.lua).
--
-- KEYS   one lock an item
-- ARGV   (unused) call broker; then an item: ticket next
--          ticket   "-": none is to be taken out
--          next     "wait": nobody is called up, as in release.lua
-- Reply  {time, call, code, ...}:  1 nobody has it alone   0 it is held
-- Twice  the same again may call up one more, who then finds the lock free or asks again later.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
--@ call_up.lua
local WIDTH = 2

local reply = {now, tonumber(ARGV[2])}
for i = 1, #KEYS do
    local key, a = KEYS[i], 3 + (i - 1) * WIDTH
    local ticket = ARGV[a + 1]
    local code = 1 - redis.call('EXISTS', key)
    if ticket ~= '-' then
        redis.call('LREM', key .. ':line', 0, ticket)
        if ticket:find('/', 1, true) then
            redis.call('ZREM', key .. ':turn', ticket)
        end
    end
    if code == 1 and ARGV[a + 2] == 'call' then
        call_up(key)
    end
    reply[#reply + 1] = code
end
return reply
