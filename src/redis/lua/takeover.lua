-- takeover: an owner takes its own hold back, under a new operation and a new token, with its count. It
-- never creates and never deletes anything, and leaves the time to live as it is: as long as it is not known that a
-- majority has been taken, nothing may live longer by it. The one who has got it renews it at once.
--
-- KEYS   one lock an item
-- ARGV   deadline call broker; then an item: op tomb owner floor counter mine kind   (as in acquire; tomb: for the old op)
--          mine   "hold": the broker of op has this hold itself; "none": what is held under an acquire of this broker is a
--                 try that it has given up: it is taken, and tells nothing of the count
--          kind   "x" exclusive, "s" shared, "n" a permit; "?": whatever this owner has, the first in that order
-- Reply  {time, call, code, value, count, pttl, of, number, left, share, ...}:
--          1 token count pttl of number left share   held under op now, for `pttl` ms; entered `count` times, which is
--                                  version "<of>.<number>": of several masters' counts that of the latest version is
--                                  true; 0: it was a try; MAXHOLD ends in `left` ms, 0: never. share: 0 the lock as a
--                                  whole, 1 as a reader, else permit i of n as n * 65536 + i
--          0 pttl  0 0 0 0 0 0   held by another owner, for so many ms; -2: by nobody
--         -1 0     0 0 0 0 0 0   op has been released or undone before it came, or is older than what holds
-- Twice  the same op again gets the same token and changes nothing.
--@ call.lua
--@ vote.lua
--@ hold.lua
--@ rare.lua
--@ shares.lua
--@ older.lua
--@ ahead.lua
local WIDTH = 7
for i = 7, #ARGV, WIDTH do
    if ARGV[i] - MOST_ASKED > 0 then
        return redis.error_reply(AHEAD)
    end
end

-- What this owner has: the part, its number in the reply, and the hold; nil: nothing.
local function find(key, owner, kind)
    local permit = (kind == 'n' or kind == '?') and redis.call('GET', permit_key(key, owner))
    local function has(part)
        local held = read(hold_key(key, part))
        return held and held.owner == owner and held
    end
    local held = (kind == 'x' or kind == '?') and has('-')
    if held then
        return '-', 0, held
    end
    held = (kind == 's' or kind == '?') and has('r:' .. owner)
    if held then
        return 'r:' .. owner, 1, held
    end
    held = permit and has('s:' .. permit)
    if held then
        local n, i = permit:match('^(%d+):(%d+)$')
        return 's:' .. permit, n * 65536 + i, held
    end
end

local base = tonumber(master[3]) or 0
local reply = {now, CALL}
for i = 1, #KEYS do
    local key, a = KEYS[i], 3 + (i - 1) * WIDTH
    local op, tomb, owner = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
    local part, share, held = find(key, owner, ARGV[a + 7])
    local hold = part and hold_key(key, part)
    local code, value, count, pttl, of, number, left = 0, 0, 0, 0, 0, 0, 0
    local relation = held and held.op ~= op and age(op, held.op)
    if not held then
        value = redis.call('PTTL', key)
    elseif held.op == op then
        code, value = 1, tonumber(held.token)
    elseif relation == 'older' or redis.call('EXISTS', gone_key(key, op)) == 1 then
        code = -1
    else
        local counter = ARGV[a + 5]
        local last = tonumber(redis.call('HGET', 'holdfast:master', counter)) or 0
        code, value = 1, math.max(last + 1, base + 1, tonumber(ARGV[a + 4]))
        redis.call('HSET', 'holdfast:master', counter, string.format('%.0f', value))
        -- the broker that had it hears at its next renewal that it has moved
        bury(key, held.op, 'moved', math.max(tonumber(tomb), redis.call('PTTL', hold)))
        -- and at once, when it listens; it asks before it believes it
        local broker = held.op:match('^(.*)%.')
        if broker and relation == nil then
            redis.call('PUBLISH', 'holdfast:wake:' .. broker, held.op .. ' ' .. key)
        end
        if relation == 'newer' and ARGV[a + 6] == 'none' and held.taken == '0' then
            held.count, held.seq, held.ends = '0', '0', '0'
        else
            held.taken = '1'
        end
        held.op, held.token = op, string.format('%.0f', value)
        write(hold, held, 'KEEPTTL')
    end
    if code == 1 then
        count, pttl = tonumber(held.count), redis.call('PTTL', hold)
        of, number = version(held.seq)
        left = held.ends ~= '0' and math.max(1, tonumber(held.ends) - now) or 0
    else
        share = 0
    end
    for _, n in ipairs({code, value, count, pttl, of, number, left, share}) do
        reply[#reply + 1] = n
    end
end
return reply
