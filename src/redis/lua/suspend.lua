-- suspend: puts this server into quarantine because its clock has jumped ahead: leases on it have ended early, and their
-- holders do not know. The mark shows it to all brokers.
--
-- ARGV   run_id quarantine
--          quarantine   ms
-- Reply  {time, state, left}, as activate
-- Twice  a repeat makes it no shorter.
--@ now.lua
local RUN, QUARANTINE = ARGV[1], tonumber(ARGV[2])
local run_id, state, ends = unpack(redis.call('HMGET', 'holdfast:master', 'run_id', 'state', 'until'))
if run_id ~= RUN then
    return redis.error_reply('STRANGER this server has lost its data')
end
local till = now + QUARANTINE
if state ~= 'active' then
    till = math.max(till, tonumber(ends))
end
-- HDEL comes first: behind it a full server takes the mark as well.
redis.call('HDEL', 'holdfast:master', 'ready')
redis.call('HSET', 'holdfast:master', 'state', 'quarantine', 'until', string.format('%.0f', till),
    'veto', 'its clock has jumped, or brokers disagreed') -- keys have gone that no broker puts back (roll.lua)
if redis.call('EXISTS', 'holdfast:planted') == 1 then
    redis.call('HSET', 'holdfast:planted', 'since', string.format('%.0f', now))
end
return {now, 'quarantine', till - now}
