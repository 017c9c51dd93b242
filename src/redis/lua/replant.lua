-- replant: puts a hold that a broker remembers on this server, which may have forgotten it: a new life has begun, and is in
-- quarantine (safety R14). Asks for no majority elsewhere, and its answer is never a vote. What others have put here in this
-- life, and is newer, stays.
--
-- The hash holdfast:planted is there only while this can be (join.lua, activate.lua). It has for each lock of which something
-- was planted in this life: <key>: operation of the exclusive hold, "" if there was none; <key>:<share>: operation of the share.
-- Whatever else stands is of a former life, and loses.
--
-- KEYS   one lock an item
-- ARGV   deadline call broker; then an item: op owner token count seq lease counter maxhold part, as in plant.lua. op "-": a
--        grave: what had this part by this token, or one before, has been ended
-- Reply  {time, call, code, ...}:
--          REPLANT_THERE     planted, or there already: for `lease` ms at least, and for no less than what it replaces
--          REPLANT_NEWER     somebody has it who was planted in this life, by a later token; or it was ended by another broker
--          REPLANT_REFUSED   op has a tombstone here, or the key is no lock
--          REPLANT_NONE      nothing is forgotten here: no life has begun, or its quarantine is over
-- Twice  the same op again writes its count only if that is of a later version, and never shortens its time.
local WANTS_TOKEN = false
--@ call.lua
--@ hold.lua
--@ rare.lua
--@ shares.lua
--@ counter.lua
--@ later.lua
--@ mirror mirror.lua
--@ codes replant
local HEAD, WIDTH, PLANTED = 3, 9, 'holdfast:planted'
local may_plant = state ~= 'active' and call('EXISTS', PLANTED) == 1
local notes -- what is still to be written of PLANTED: field, value, field, value, ...; nil: all is written at once

-- Tells whether nothing is there of any of these locks, and none comes twice: nearly always, as all is forgotten. Then none
-- is looked for by itself.
local function are_forgotten()
    local fields, keys, seen = {}, {}, {}
    for i = 1, #KEYS do
        local key, last = KEYS[i], HEAD + WIDTH * i
        local op, part = ARGV[last - WIDTH + 1], ARGV[last]
        if op == '-' or seen[key] then
            return false
        end
        seen[key] = true
        fields[2 * i - 1], fields[2 * i] = key, 'over:' .. hold_key(key, part)
        keys[4 * i - 3], keys[4 * i - 2], keys[4 * i - 1] = key, key .. ':shares', key .. ':upgrade'
        keys[4 * i] = gone_key(key, op)
    end
    local known = call('HMGET', PLANTED, unpack(fields))
    for i = 1, #fields do
        if known[i] then
            return false
        end
    end
    return call('EXISTS', unpack(keys)) == 0
end

-- Writes a field of PLANTED.
local function note(field, value)
    if notes then
        notes[#notes + 1] = field
        notes[#notes + 1] = value
    else
        call('HSET', PLANTED, field, value)
    end
end

-- Ends all that a former life has left of a lock, before the first hold of it is planted.
local function clear(key)
    for _, part in ipairs(call('ZRANGE', key .. ':shares', 0, -1)) do
        forget_permit(key, part)
        call('DEL', hold_key(key, part))
    end
    call('DEL', key, key .. ':shares', key .. ':upgrade')
    call('HSET', PLANTED, key, '')
end

-- Can these two be held at the same time?
local function go_together(part, owner, other, other_owner)
    if part == other or part == '-' or other == '-' then
        return part ~= other and owner == other_owner and (is_reader(part) or is_reader(other))
    end
    return is_reader(part) and is_reader(other)
        or is_permit(part) and is_permit(other) and part:match('^s:(%d+):') == other:match('^s:(%d+):')
end

-- Returns those that cannot be there beside this one, for how long the last of them would, and the highest token of those
-- that were planted.
local function find_rivals(key, part, op, owner)
    local rivals, longest, highest = {}, 0, 0
    local parts = shares(key) > 0 and call('ZRANGE', key .. ':shares', 0, -1) or {}
    parts[#parts + 1] = '-'
    for _, other in ipairs(parts) do
        local hold = hold_key(key, other)
        local held = read(hold)
        if held and held.op ~= op and not go_together(part, owner, other, held.owner) then
            rivals[#rivals + 1] = other
            if call('HGET', PLANTED, hold) == held.op then
                longest = math.max(longest, call('PTTL', hold))
                highest = math.max(highest, tonumber(held.token))
            end
        end
    end
    return rivals, longest, highest
end

local function remove(key, part)
    forget_permit(key, part)
    call('DEL', hold_key(key, part))
    if part ~= '-' then
        call('ZREM', key .. ':shares', part)
    end
end

-- Writes the hold h for so many ms.
local function put(key, part, h, lease)
    local hold = hold_key(key, part)
    write(hold, h, 'PX', lease)
    note(hold, h.op)
    if part ~= '-' then
        enter_share(key, part, h.owner, lease, true)
    end
    return REPLANT_THERE
end

-- What had this part of the lock under that token, or one before, is over, whoever plants it: as told by the broker that has
-- ended it. One that stands here is renewed no more, and stays until its time: who took it over may have less than was told.
local function bury_below(key, part, token)
    local field = 'over:' .. hold_key(key, part)
    if tonumber(token) > tonumber(call('HGET', PLANTED, field) or 0) then
        call('HSET', PLANTED, field, token)
    end
    return REPLANT_THERE
end

-- Goes on from what is there of the lock: h as it was, where its count is of a later version here, and for no less time.
local function replant_beside(key, part, h, lease, is_known)
    local there = look(key)
    if there and not there:match(OP) or call('EXISTS', gone_key(key, h.op)) == 1 then
        return REPLANT_REFUSED
    elseif not is_known then
        clear(key)
    end
    local rivals, longest, highest = find_rivals(key, part, h.op, h.owner)
    if highest > tonumber(h.token) then
        return REPLANT_NEWER
    end
    for _, other in ipairs(rivals) do
        remove(key, other)
    end
    local held = read(hold_key(key, part))
    if held then
        longest = math.max(longest, call('PTTL', hold_key(key, part)))
    end
    if held and held.op == h.op and not is_later(h.seq, held.seq) then
        h.count, h.seq = held.count, held.seq
    end
    return put(key, part, h, string.format('%.0f', math.max(tonumber(lease), longest)))
end

local function replant(key, part, h, lease)
    if not notes then
        local known, over = unpack(call('HMGET', PLANTED, key, 'over:' .. hold_key(key, part)))
        if tonumber(h.token) <= tonumber(over or 0) then
            return REPLANT_NEWER
        elseif known or call('EXISTS', key, key .. ':shares', key .. ':upgrade', gone_key(key, h.op)) > 0 then
            return replant_beside(key, part, h, lease, known)
        end
    end
    if part ~= '-' then
        note(key, '')
    end
    return put(key, part, h, lease)
end

if may_plant and are_forgotten() then
    notes = {}
end
local raised = {} -- highest token planted, by counter
local reply = {now, CALL}
for i = 1, #KEYS do
    local first = HEAD + WIDTH * (i - 1) + 1
    local op, owner, token, count, seq, lease, counter, maxhold, part = unpack(ARGV, first, first + WIDTH - 1)
    local ends = maxhold == '0' and '0' or string.format('%.0f', now + maxhold)
    local h = {op = op, token = token, count = count, seq = seq, lease = lease, ends = ends, taken = '0', owner = owner}
    local code = may_plant and REPLANT_REFUSED or REPLANT_NONE
    --@ mirror if not plain[i].foreign then
    if may_plant then
        code = op == '-' and bury_below(KEYS[i], part, token) or replant(KEYS[i], part, h, lease)
    end
    --@ mirror end
    if code == REPLANT_THERE and op ~= '-' then
        raised[counter] = math.max(raised[counter] or 0, tonumber(token))
    end
    reply[i + 2] = code
end
if notes and #notes > 0 then
    call('HSET', PLANTED, unpack(notes))
end
for counter, token in pairs(raised) do
    if last_token(counter) < token then
        count_to(counter, token)
    end
end
--@ mirror mirror_end.lua
return reply
