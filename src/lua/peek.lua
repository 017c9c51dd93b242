-- peek: what this server knows of locks. Changes nothing.
--
-- KEYS   one lock an item
-- ARGV   (unused) call
-- Reply  {time, call, item, ...}; an item is {} for a free lock, else {pttl, op, owner, token, count}
local clock = redis.call('TIME')
local reply = {clock[1] * 1000 + math.floor(clock[2] / 1000), tonumber(ARGV[2])}
for i = 1, #KEYS do
    local held = redis.pcall('HMGET', KEYS[i], 'op', 'owner', 'token', 'count')
    local item = {}
    if held[1] then
        item = {redis.call('PTTL', KEYS[i]), held[1], held[2], tonumber(held[3]), tonumber(held[4])}
    end
    reply[#reply + 1] = item
end
return reply
