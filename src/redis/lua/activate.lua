-- activate: ends the quarantine of this server. Every token that it gives from now on is above `base`,
-- the highest that enough of the other masters have given.
--
-- ARGV   run_id base force digest
--          force   1: whatever is left of the quarantine (an administrator's word)
--          digest  of the settings of this broker: the base is good for its list of masters
-- Reply  {time, state, left}
-- Twice  a repeat changes nothing, and base never goes back.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local mark = redis.call('HMGET', 'holdfast:master', 'run_id', 'state', 'until', 'base', 'digest')
if mark[1] ~= ARGV[1] then
    return redis.error_reply('STRANGER this server has lost its data')
elseif mark[5] ~= ARGV[4] then
    return redis.error_reply('SETTINGS other settings than those of this broker are in force here')
end
local left = 0
if mark[2] ~= 'active' then
    left = math.max(0, tonumber(mark[3]) - now)
    if ARGV[3] == '1' then
        left = 0
    end
    if left == 0 then
        mark[2] = 'active'
        redis.call('HSET', 'holdfast:master', 'state', 'active')
        if tonumber(ARGV[2]) > (tonumber(mark[4]) or 0) then
            redis.call('HSET', 'holdfast:master', 'base', ARGV[2])
        end
    end
end
return {now, mark[2], left}
