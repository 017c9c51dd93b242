-- takeover: an owner takes its own hold back, under a new operation and a new token, with its count (safety R11). It never
-- creates and never deletes anything, and leaves the time to live as it is: as long as it is not known that a majority has
-- been taken over, nothing may live longer by it. Who has got it renews it at once.
--
-- KEYS   one lock an item
-- ARGV   deadline call broker; then an item: op tomb owner floor counter mine kind
--          op, owner, floor, counter   as in acquire.lua; tomb: ms for which the old operation is remembered
--          mine   "hold": this broker has the hold of its own operations itself; "none": what is held under an acquire of
--                 this broker is a try that it has given up: it is taken, and tells nothing of the count
--          kind   "x" exclusive, "s" as a reader, "n" a permit; "?": whatever this owner has, the first in that order
-- Reply  {time, call, code, value, count, pttl, of, number, left, share, ...}:
--          TAKEOVER_TAKEN token count pttl of number left share
--                                  held under op now, for `pttl` ms; entered `count` times, which is version
--                                  "<of>.<number>": of several servers' counts the one with the latest version is true;
--                                  0: it was a try. MAXHOLD ends in `left` ms, 0: never. share: see enum share_code
--                                  (codes.h)
--          TAKEOVER_NOT_OWN ms 0 0 0 0 0 0   held by another owner, for so many ms; -2: by nobody
--          TAKEOVER_GONE 0 0 0 0 0 0 0       op was released or undone before it came, or is older than what holds
-- Twice  the same op again gets the same token and changes nothing.
local WANTS_TOKEN = true
--@ call.lua
--@ vote.lua
--@ hold.lua
--@ rare.lua
--@ shares.lua
--@ own.lua
--@ older.lua
--@ ahead.lua
--@ counter.lua
--@ codes takeover share
--@ mirror mirror.lua
local HEAD, WIDTH, FLOOR, REPLY_WIDTH = 3, 7, 4, 8
for i = HEAD + FLOOR, #ARGV, WIDTH do
    if ARGV[i] - MOST_ASKED > 0 then
        return redis.error_reply(AHEAD)
    end
end
local base = tonumber(master[3]) or 0

-- Returns what this owner has: the part, its number in the reply, and the hold; nil: nothing.
local function find(key, owner, wanted)
    for _, kind in ipairs(wanted == '?' and {'x', 's', 'n'} or {wanted}) do
        local part, held = own(key, owner, kind)
        if part then
            local n, i = part:match('^s:(%d+):(%d+)$')
            return part, kind == 'x' and SHARE_WHOLE or kind == 's' and SHARE_READER or n * SHARE_PERMIT + i, held
        end
    end
end

-- The broker that had the hold hears at its next renewal that it has moved; and at once, when it listens and is another one.
-- It asks before it believes it.
local function tell_former(key, hold, op, relation, tomb)
    bury(key, op, 'moved', math.max(tonumber(tomb), call('PTTL', hold)))
    local broker = op:match('^(.*)%.')
    if broker and not relation then
        call('PUBLISH', 'holdfast:wake:' .. broker, op .. ' ' .. key)
    end
end

-- Writes the hold under its new operation and token.
local function move(hold, held, op, token, is_try)
    if is_try then
        held.count, held.seq, held.ends = '0', '0', '0'
    else
        held.taken = '1'
    end
    held.op, held.token = op, string.format('%.0f', token)
    write(hold, held, 'KEEPTTL')
end

-- Takes `held` over: code and value.
local function take(key, hold, held, op, tomb, floor, counter, mine)
    local relation = age(op, held.op)
    if held.op == op then
        return TAKEOVER_TAKEN, tonumber(held.token)
    elseif relation == 'older' or call('EXISTS', gone_key(key, op)) == 1 then
        return TAKEOVER_GONE, 0
    end
    local token = math.max(last_token(counter) + 1, base + 1, tonumber(floor))
    count_to(counter, token)
    tell_former(key, hold, held.op, relation, tomb)
    move(hold, held, op, token, relation == 'newer' and mine == 'none' and held.taken == '0')
    return TAKEOVER_TAKEN, token
end

local reply = {now, CALL}
for i = 1, #KEYS do
    local first = HEAD + WIDTH * (i - 1) + 1
    local op, tomb, owner, floor, counter, mine, kind = unpack(ARGV, first, first + WIDTH - 1)
    local part, share, held = find(KEYS[i], owner, kind)
    --@ mirror if plain[i].foreign then held = nil end
    local answer = {TAKEOVER_NOT_OWN, 0, 0, 0, 0, 0, 0, 0}
    if not held then
        answer[2] = call('PTTL', KEYS[i])
    else
        local hold = hold_key(KEYS[i], part)
        local code, value = take(KEYS[i], hold, held, op, tomb, floor, counter, mine)
        answer[1], answer[2] = code, value
        if code == TAKEOVER_TAKEN then
            local left = held.ends ~= '0' and math.max(1, tonumber(held.ends) - now) or 0
            answer[3], answer[4] = tonumber(held.count), call('PTTL', hold)
            answer[5], answer[6] = version(held.seq)
            answer[7], answer[8] = left, share
        end
    end
    for j = 1, REPLY_WIDTH do
        reply[2 + REPLY_WIDTH * (i - 1) + j] = answer[j]
    end
end
return reply
