-- pass: gives back a turn that is not wanted, or calls up whose turn it is. Takes a ticket out of the line of a lock;
-- when the lock is free, the first of those who are left is called up (see call_up.lua).
--
-- KEYS   one lock an item
-- ARGV   (unused) call; then an item: ticket next
--          ticket   "-": none is to be taken out
--          next     "wait": nobody is called up, as in release.lua
-- Reply  {time, call, code, ...}:  1 the lock is free   0 it is held
-- Twice  the same again may call up one more, who then finds the lock free or asks again later.
--@ call_up.lua
local WIDTH = 2

local clock = redis.call('TIME')
local reply = {clock[1] * 1000 + math.floor(clock[2] / 1000), tonumber(ARGV[2])}
for i = 1, #KEYS do
    local key, a = KEYS[i], 2 + (i - 1) * WIDTH
    local ticket = ARGV[a + 1]
    local code = 1 - redis.call('EXISTS', key)
    if ticket ~= '-' then
        redis.call('LREM', key .. ':line', 0, ticket)
    end
    if code == 1 and ARGV[a + 2] == 'call' then
        call_up(key)
    end
    reply[#reply + 1] = code
end
return reply
