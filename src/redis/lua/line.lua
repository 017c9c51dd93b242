-- line: lines a ticket up for a lock, behind those who stand there (acquire.lua says what a ticket is).
--
-- KEYS   one lock an item
-- ARGV   (unused) call broker; then an item: ticket
-- Reply  {time, call, length, ...}: how many stand in the line then
-- Twice  a ticket stands in the line once; a repeat sends it to the end.
--@ now.lua
--@ line_up.lua
local HEAD = 3

local reply = {now, tonumber(ARGV[2])}
for i = 1, #KEYS do
    local line, ticket = KEYS[i] .. ':line', ARGV[HEAD + i]
    redis.call('LREM', line, 0, ticket)
    line_up(KEYS[i], ticket, 'tail')
    reply[i + 2] = redis.call('LLEN', line)
end
return reply
