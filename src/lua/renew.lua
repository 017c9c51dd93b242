-- renew: extends holds, and writes how often each has been entered. It never creates a hold.
--
-- KEYS   one lock an item
-- ARGV   deadline call; then an item: op lease count seq part    (part: as in release.lua)
--          lease   ms from now; 0: the time to live stays. Shortens it only with a newer seq: a late copy must not
--          count   the absolute count, from the one broker that has the hold; seq: its version, written
--                  only when newer than what is there
-- Reply  {time, call, code, ...}:  1 held under op   0 not there   -1 there under another operation
--                            -2 its owner has taken it over under another operation
-- Twice  the same again changes nothing but the time to live.
--@ vote.lua
--@ shares.lua
local WIDTH = 5

local no = refusal(redis.call('HMGET', 'holdfast:master', 'run_id', 'state'))
if no then
    return no
end

local reply = {now, tonumber(ARGV[2])}
for i = 1, #KEYS do
    local key, a = KEYS[i], 2 + (i - 1) * WIDTH
    local op, lease, part = ARGV[a + 1], ARGV[a + 2], ARGV[a + 5]
    local hold = hold_key(key, part)
    local held = redis.pcall('HMGET', hold, 'op', 'seq', 'owner')
    local code = 0
    if held[1] == op then
        code = 1
        local newer = held[2] ~= ARGV[a + 4] and tonumber(held[2]) < tonumber(ARGV[a + 4])
        if lease ~= '0' and (newer or tonumber(lease) > redis.call('PTTL', hold)) then
            redis.call('PEXPIRE', hold, lease)
            if part ~= '-' then
                enter_share(key, part, held[3], lease, newer)
            end
        end
        if newer then
            redis.call('HSET', hold, 'count', ARGV[a + 3], 'seq', ARGV[a + 4])
        end
    elseif held[1] then
        code = redis.call('GET', key .. ':gone:' .. op) == 'moved' and -2 or -1
    end
    reply[#reply + 1] = code
end
return reply
