-- suspend: puts this server into quarantine because its clock has jumped ahead: leases on it have ended early, and their
-- holders do not know. All brokers see the mark.
--
-- ARGV   run_id quarantine
--          quarantine   ms
-- Reply  {time, state, left}, as activate
-- Twice  a repeat makes it no shorter.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local mark = redis.call('HMGET', 'holdfast:master', 'run_id', 'state', 'until')
if mark[1] ~= ARGV[1] then
    return redis.error_reply('STRANGER this server has lost its data')
end
local till = now + tonumber(ARGV[2])
if mark[2] ~= 'active' then
    till = math.max(till, tonumber(mark[3]))
end
-- First: behind it a full server takes the mark as well.
redis.call('HDEL', 'holdfast:master', 'ready')
redis.call('HSET', 'holdfast:master', 'state', 'quarantine', 'until', string.format('%.0f', till))
return {now, 'quarantine', till - now}
