-- peek: tells what this server knows of locks. Changes nothing.
--
-- KEYS   one lock an item
-- ARGV   (unused) call broker
-- Reply  {time, call, item, ...}; an item is {} for a free lock, else {n, pttl, op, owner, token, count, of, number, part,
--        ...}: how many holds there are, and of the first of them (16, or fewer when many locks are asked for) eight values
--        each; of and number: the version of count (hold.lua); part: see shares.lua
--@ now.lua
--@ hold.lua
--@ rare.lua
--@ shares.lua
local WIDTH, SHOWN = 8, math.max(1, math.min(16, math.floor(128 / #KEYS)))
local call = redis.call
local reply = {now, tonumber(ARGV[2])}

local function add(item, key, part)
    local hold = hold_key(key, part)
    local held = read(hold)
    if held and held.op then
        item[1] = (item[1] or 0) + 1
        local token, count, of, number = tonumber(held.token), tonumber(held.count), version(held.seq)
        for _, value in ipairs({call('PTTL', hold), held.op, held.owner, token, count, of, number, part}) do
            item[#item + 1] = value
        end
    end
end

for i = 1, #KEYS do
    local key, item = KEYS[i], {}
    add(item, key, '-')
    if call('EXISTS', key .. ':shares') == 1 then
        local parts = call('ZRANGEBYSCORE', key .. ':shares', string.format('%.0f', now), '+inf', 'LIMIT', 0, SHOWN)
        for _, part in ipairs(parts) do
            if #item < WIDTH * SHOWN then
                add(item, key, part)
            end
        end
        if item[1] then
            local live = call('ZCOUNT', key .. ':shares', string.format('%.0f', now), '+inf')
            item[1] = math.max(item[1], live + call('EXISTS', key))
        end
    end
    reply[#reply + 1] = item
end
return reply
