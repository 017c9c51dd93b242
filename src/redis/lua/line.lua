-- line: lines a ticket up for a lock, behind those who stand there (see acquire.lua).
--
-- KEYS   one lock an item
-- ARGV   (unused) call broker; then an item: ticket
-- Reply  {time, call, length, ...}: how many stand in the line then
-- Twice  a ticket stands in the line once; a repeat sends it to the end.
local WIDTH = 1

--@ line_up.lua
local clock = redis.call('TIME')
local reply = {clock[1] * 1000 + math.floor(clock[2] / 1000), tonumber(ARGV[2])}
for i = 1, #KEYS do
    local line, ticket = KEYS[i] .. ':line', ARGV[4 + (i - 1) * WIDTH]
    redis.call('LREM', line, 0, ticket)
    line_up(KEYS[i], ticket, 'tail')
    reply[#reply + 1] = redis.call('LLEN', line)
end
return reply
