-- activate: ends the quarantine of this server. Every token that it gives from now on is above `base`, the highest that
-- enough of the other servers have given (safety R5).
--
-- ARGV   run_id base force digest
--          force   "1": whatever is left of the quarantine (an administrator's word)
--          digest  of the settings of this broker: `base` is good for its list of masters
-- Reply  {time, state, left}
-- Twice  a repeat changes nothing, and base never goes back.
--@ now.lua
--@ end_quarantine.lua
local RUN, BASE, FORCE, DIGEST = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4]
local mark = redis.call('HMGET', 'holdfast:master', 'run_id', 'state', 'until', 'base', 'digest')
local run_id, state, till, base, digest = unpack(mark)
if run_id ~= RUN then
    return redis.error_reply('STRANGER this server has lost its data')
elseif digest ~= DIGEST then
    return redis.error_reply('SETTINGS other settings than those of this broker are in force here')
end
local left = 0
if state ~= 'active' then
    left = FORCE and 0 or math.max(0, tonumber(till) - now)
    if left == 0 then
        state = 'active'
        end_quarantine(BASE, base)
    end
end
return {now, state, left}
