-- plant: puts a hold that is known to have its majority elsewhere on this server too, where it is missing and the lock is
-- free (safety R3). Its answer is never a vote. Also works while the server is in quarantine.
--
-- KEYS   one lock an item
-- ARGV   deadline call broker; then an item: op owner token count seq lease counter maxhold part
--          maxhold, counter as in acquire.lua; part: see shares.lua
-- Reply  {time, call, code, ...}:
--          PLANT_THERE     planted, or there already
--          PLANT_REFUSED   somebody has it, or op is gone
-- Twice  the same op again changes nothing.
local WANTS_TOKEN = false
--@ call.lua
--@ hold.lua
--@ rare.lua
--@ shares.lua
--@ counter.lua
--@ mirror mirror.lua
--@ codes plant
local HEAD, WIDTH = 3, 9

-- Does somebody hold the lock in a way that cannot be at the same time?
local function is_taken(key, owner, part)
    local held = read(key)
    if held and not (is_reader(part) and held.owner == owner) then
        return true
    end
    local live = shares(key)
    if live == 0 then
        return false
    elseif is_permit(part) then
        return limit_of(key) ~= tonumber(part:match('^s:(%d+):'))
    elseif limit_of(key) then
        return true
    end
    return not is_reader(part) and not (live == 1 and call('ZSCORE', key .. ':shares', 'r:' .. owner))
end

local reply = {now, CALL}
for i = 1, #KEYS do
    local key, first = KEYS[i], HEAD + WIDTH * (i - 1) + 1
    local op, owner, token, count, seq, lease, counter, maxhold, part = unpack(ARGV, first, first + WIDTH - 1)
    local hold = hold_key(key, part)
    local held = look(hold)
    local code = held and held:match(OP) == op and PLANT_THERE or PLANT_REFUSED
    --@ mirror if not plain[i].foreign then
    if not held and not is_taken(key, owner, part) and call('EXISTS', gone_key(key, op)) == 0 then
        code = PLANT_THERE
        local ends = maxhold == '0' and '0' or string.format('%.0f', now + maxhold)
        call('SET', hold, hold_text(op, token, count, seq, lease, ends, '0', owner), 'PX', lease)
        if part ~= '-' then
            enter_share(key, part, owner, lease, true)
        end
        if last_token(counter) < tonumber(token) then
            count_to(counter, token)
        end
    end
    --@ mirror end
    reply[i + 2] = code
end
--@ mirror mirror_end.lua
return reply
