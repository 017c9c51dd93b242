-- commit: raises the token of a hold to the one that its majority agreed on. Only where the hold still
-- carries this very operation, and never downwards: written elsewhere, or lowered, the same token
-- could be granted twice.
--
-- KEYS   one lock an item
-- ARGV   deadline call; then an item: op token bucket
-- Reply  {time, call, code, value, ...}:
--          1 token   the hold has this token now
--          2 token   the hold has this larger one: raise yours and commit again
--          0 0       the hold is not there any more under op
-- Twice  the same again changes nothing.
local RUN_ID = '@RUN_ID@'
local WIDTH = 3

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local deadline = tonumber(ARGV[1])
if deadline and now > deadline then
    return redis.error_reply('LATE the request came after its deadline')
end
local master = redis.call('HMGET', 'holdfast:master', 'run_id', 'state')
if RUN_ID:byte() ~= 64 then
    if master[1] ~= RUN_ID then
        return redis.error_reply('STRANGER this server has lost its data')
    end
    if master[2] ~= 'active' then
        return redis.error_reply('QUARANTINE this server may not vote yet')
    end
end

local reply = {now, tonumber(ARGV[2])}
for i = 1, #KEYS do
    local key, a = KEYS[i], 2 + (i - 1) * WIDTH
    local op, token, bucket = ARGV[a + 1], tonumber(ARGV[a + 2]), ARGV[a + 3]
    local held = redis.pcall('HMGET', key, 'op', 'token')
    local code, value = 0, 0
    if held[1] == op then
        value = tonumber(held[2])
        code = value > token and 2 or 1
        if value < token then
            value = token
            redis.call('HSET', key, 'token', token)
            local counter = tonumber(redis.call('HGET', 'holdfast:master', bucket)) or 0
            if counter < token then
                redis.call('HSET', 'holdfast:master', bucket, token)
            end
        end
    end
    reply[#reply + 1] = code
    reply[#reply + 1] = value
end
return reply
