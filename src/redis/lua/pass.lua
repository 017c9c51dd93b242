-- pass: takes a ticket out of the line of a lock, and when nobody has the lock as a whole, calls up the first one of those
-- that are left (call_up.lua). So a turn that is not wanted is given back.
--
-- KEYS   one lock an item
-- ARGV   (unused) call broker; then an item: ticket next
--          ticket   "-": none is taken out
--          next     "call", or "wait": nobody is called up, as in release.lua
-- Reply  {time, call, code, ...}: PASS_FREE or PASS_HELD, whether somebody has the lock as a whole
-- Twice  the same again may call up one more, who then finds the lock free or asks again later.
--@ now.lua
--@ call_up.lua
--@ codes pass
local HEAD, WIDTH, call = 3, 2, redis.call

local reply = {now, tonumber(ARGV[2])}
for i = 1, #KEYS do
    local key, first = KEYS[i], HEAD + WIDTH * (i - 1) + 1
    local ticket, turn = unpack(ARGV, first, first + WIDTH - 1)
    local code = call('EXISTS', key) == 0 and PASS_FREE or PASS_HELD
    if ticket ~= '-' then
        call('LREM', key .. ':line', 0, ticket)
        if ticket:find('/', 1, true) then
            call('ZREM', key .. ':turn', ticket)
        end
    end
    if code == PASS_FREE and turn == 'call' then
        call_up(key)
    end
    reply[i + 2] = code
end
return reply
