-- renew: extends holds, and writes how often each has been entered. It never creates a hold.
--
-- KEYS   one lock an item
-- ARGV   deadline call broker; then an item: op lease count seq part    (part: as in release.lua)
--          lease   ms from now; 0: the time to live stays. Shortens it only with a newer seq: a late copy must not
--          count   the absolute count, from the one broker that has the hold; seq: its version, written
--                  only when newer than what is there
-- Reply  {time, call}: each item 1; or {time, call, code, ...}:
--          1 held under op   0 not there   -1 there under another operation
--         -2 its owner has taken it over under another operation
-- Twice  the same again changes nothing but the time to live.
--@ vote.lua
--@ hold.lua
local WIDTH = 5
local call, KEYS, ARGV = redis.call, KEYS, ARGV

local no = refusal(call('HMGET', 'holdfast:master', 'run_id', 'state', LAST))
if no then
    return no
end

-- A share, whose place in the set has a time of its own: these functions are made when there is one.
local function of_shares()
    --@ rare.lua
    --@ shares.lua
    return hold_key, enter_share
end

local function renew(hold, lease, count, seq, newer)
    if newer then
        local held = read(hold)
        held.count, held.seq = count, seq
        if lease == '0' then
            write(hold, held, 'KEEPTTL')
        else
            write(hold, held, 'PX', lease)
        end
        return lease ~= '0'
    end
    return lease ~= '0' and call('PEXPIRE', hold, lease, 'GT') == 1
end

local hold_key, enter_share
local reply, all = {now, CALL}, true
for i = 1, #KEYS do
    local a = 3 + (i - 1) * WIDTH
    local op, lease, seq, part = ARGV[a + 1], ARGV[a + 2], ARGV[a + 4], ARGV[a + 5]
    local hold, code = KEYS[i], 0
    if part ~= '-' then
        if not hold_key then
            hold_key, enter_share = of_shares()
        end
        hold = hold_key(hold, part)
    end
    local text = look(hold)
    local held, its
    if text then
        held, its = text:match(SEQ)
    end
    if held == op then
        code = 1
        local newer = its ~= seq and tonumber(its) < tonumber(seq)
        if renew(hold, lease, ARGV[a + 3], seq, newer) and part ~= '-' then
            enter_share(KEYS[i], part, read(hold).owner, lease, newer)
        end
    elseif held then
        code = call('GET', KEYS[i] .. ':gone:' .. op) == 'moved' and -2 or -1
    end
    reply[i + 2], all = code, all and code == 1
end
return all and {now, CALL} or reply
