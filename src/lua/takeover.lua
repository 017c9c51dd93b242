-- takeover: an owner takes its own hold back, under a new operation and a new token, with its count. It
-- never creates and never deletes anything.
--
-- KEYS   one lock an item
-- ARGV   deadline call; then an item: op tomb owner lease floor bucket    (as in acquire; tomb: for the old op)
-- Reply  {time, call, code, value, count, was, seq, ...}:
--          1 token count was seq   held under op now; entered `count` times, which is version `seq` of the hold that
--                                  had the token `was`: of several masters' counts the one with the highest
--                                  (was, seq) is true
--          0 pttl  0 0 0   held by another owner, for so many ms; -2: by nobody
--         -1 0     0 0 0   op has been released or undone before it came
-- Twice  the same op again gets the same token and changes nothing.
--@ vote.lua
local WIDTH = 6

local master = redis.call('HMGET', 'holdfast:master', 'run_id', 'state', 'base')
local no = refusal(master)
if no then
    return no
end

local base = tonumber(master[3]) or 0
local reply = {now, tonumber(ARGV[2])}
for i = 1, #KEYS do
    local key, a = KEYS[i], 2 + (i - 1) * WIDTH
    local op, tomb, owner = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
    local held = redis.pcall('HMGET', key, 'op', 'token', 'owner', 'count', 'seq', 'was')
    local code, value, count, was, seq = 0, 0, 0, 0, 0
    if held[1] == op then
        code, value, count = 1, tonumber(held[2]), tonumber(held[4]) or 1
        was, seq = tonumber(held[6]) or 0, tonumber(held[5]) or 0
    elseif held[3] ~= owner or not held[1] then
        value = redis.call('PTTL', key)
    elseif redis.call('EXISTS', key .. ':gone:' .. op) == 1 then
        code = -1
    else
        local lease, bucket = ARGV[a + 4], ARGV[a + 6]
        local counter = tonumber(redis.call('HGET', 'holdfast:master', bucket)) or 0
        code, value, count = 1, math.max(counter + 1, base + 1, tonumber(ARGV[a + 5])), tonumber(held[4]) or 1
        was, seq = tonumber(held[2]) or 0, tonumber(held[5]) or 0
        redis.call('HSET', 'holdfast:master', bucket, value)
        -- the broker that had it hears at its next renewal that it has moved
        redis.call('SET', key .. ':gone:' .. held[1], 'moved', 'PX', math.max(tonumber(tomb), redis.call('PTTL', key)))
        redis.call('HSET', key, 'op', op, 'token', value, 'was', was, 'lease', lease)
        -- never shorter: should this fail elsewhere, the hold still stands as long as was told
        redis.call('PEXPIRE', key, math.max(tonumber(lease), redis.call('PTTL', key)))
    end
    reply[#reply + 1] = code
    reply[#reply + 1] = value
    reply[#reply + 1] = count
    reply[#reply + 1] = was
    reply[#reply + 1] = seq
end
return reply
