-- plant: puts a hold that is known to have its majority elsewhere on this server too, where it is missing
-- and the lock is free. Its answer is never a vote. Also works while the server is in quarantine.
--
-- KEYS   one lock an item
-- ARGV   deadline call; then an item: op owner token count seq lease bucket maxhold    (as in acquire)
-- Reply  {time, call, code, ...}:  1 planted, or there already   0 taken, or op is gone
-- Twice  the same op again changes nothing.
--@ vote.lua
local WIDTH = 8

local no = refusal({redis.call('HGET', 'holdfast:master', 'run_id'), 'active'})
if no then
    return no
end

local reply = {now, tonumber(ARGV[2])}
for i = 1, #KEYS do
    local key, a = KEYS[i], 2 + (i - 1) * WIDTH
    local op, owner, token, lease, bucket = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 6], ARGV[a + 7]
    local held = redis.pcall('HGET', key, 'op')
    local code = held == op and 1 or 0
    if not held and redis.call('EXISTS', key .. ':gone:' .. op) == 0 then
        code = 1
        redis.call('HSET', key, 'kind', 'exclusive', 'owner', owner, 'count', ARGV[a + 4], 'seq', ARGV[a + 5],
                   'token', token, 'op', op, 'lease', lease)
        if ARGV[a + 8] ~= '0' then
            redis.call('HSET', key, 'end', now + tonumber(ARGV[a + 8]))
        end
        redis.call('PEXPIRE', key, lease)
        local counter = tonumber(redis.call('HGET', 'holdfast:master', bucket)) or 0
        if counter < tonumber(token) then
            redis.call('HSET', 'holdfast:master', bucket, token)
        end
    end
    reply[#reply + 1] = code
end
return reply
