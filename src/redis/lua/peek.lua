-- peek: tells what this server knows of locks. Changes nothing.
--
-- KEYS   one lock an item
-- ARGV   (unused) call broker; then an item: owner
--          owner   tells of the holds of this owner; "": of the first ones, whoever has them
-- Reply  {time, call, item, ...}; an item is {} for none, else {n, pttl, op, owner, token, count, of, number, part, ...}: how
--        many holds there are, and of the first of them (16, or fewer when many locks are asked for) eight values each; of
--        and number: the version of count (hold.lua); part: see shares.lua. Or {-ms}: somebody else's plain key stands there,
--        for so long (mirror.lua)
--@ now.lua
--@ hold.lua
--@ rare.lua
--@ shares.lua
--@ own.lua
--@ mirror mirror.lua
local HEAD, WIDTH, SHOWN = 3, 8, math.max(1, math.min(16, math.floor(128 / #KEYS)))
local reply = {now, tonumber(ARGV[2])}

local function add(item, key, part, held)
    if held and held.op and #item < WIDTH * SHOWN then
        item[1] = (item[1] or 0) + 1
        local pttl, token, count = call('PTTL', hold_key(key, part)), tonumber(held.token), tonumber(held.count)
        local of, number = version(held.seq)
        for _, value in ipairs({pttl, held.op, held.owner, token, count, of, number, part}) do
            item[#item + 1] = value
        end
    end
end

local function add_first(item, key)
    local live = string.format('%.0f', now)
    for _, part in ipairs(call('ZRANGEBYSCORE', key .. ':shares', live, '+inf', 'LIMIT', 0, SHOWN)) do
        add(item, key, part, read(hold_key(key, part)))
    end
    if item[1] then
        item[1] = math.max(item[1], call('ZCOUNT', key .. ':shares', live, '+inf') + call('EXISTS', key))
    end
end

for i = 1, #KEYS do
    local key, owner, item = KEYS[i], ARGV[HEAD + i], {}
    local alone = read(key)
    if owner == '' or alone and alone.owner == owner then
        add(item, key, '-', alone)
    end
    if call('EXISTS', key .. ':shares') == 1 then
        if owner == '' then
            add_first(item, key)
        else
            add(item, key, own(key, owner, 's'))
            add(item, key, own(key, owner, 'n'))
        end
    end
    --@ mirror if owner == '' and not item[1] and plain[i].foreign then item[1] = -plain[i].foreign end
    reply[#reply + 1] = item
end
return reply
