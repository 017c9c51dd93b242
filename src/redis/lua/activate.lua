-- activate: ends the quarantine of this server. Every token that it gives from now on is above `base`, the highest that
-- enough of the other servers have given (safety R5).
--
-- ARGV   run_id base force digest names longest
--          force   "1": whatever is left of the quarantine (an administrator's word)
--          digest  of the settings of this broker: `base` is good for its list of masters
--          names   "": the time is enough; else of all brokers, with commas between, each of whom must have signed, or must
--                  have been here (roll.lua) for `longest` ms: a broker that is nowhere to be seen may still use the server
--                  that was the master before
-- Reply  {time, state, left}
-- Twice  a repeat changes nothing, and base never goes back.
--@ now.lua
--@ end_quarantine.lua
local RUN, BASE, FORCE, DIGEST = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4]
local NAMES, LONGEST = ARGV[5] or '', tonumber(ARGV[6] or 0)
local mark = redis.call('HMGET', 'holdfast:master', 'run_id', 'state', 'until', 'base', 'digest')
local run_id, state, till, base, digest = unpack(mark)
if run_id ~= RUN then
    return redis.error_reply('STRANGER this server has lost its data')
elseif digest ~= DIGEST then
    return redis.error_reply('SETTINGS other settings than those of this broker are in force here')
end

-- Returns how long it still takes until all brokers have been here for long enough; of those that are missing it cannot be
-- less than all of it.
local function wait_for_brokers()
    local wait = 0
    for name in NAMES:gmatch('[^,]+') do
        local record, sign = unpack(redis.call('HMGET', 'holdfast:master', 'broker:' .. name, 'sign:' .. name))
        if not sign then
            wait = math.max(wait, tonumber((record or ''):match(' (%d+)$') or now) + LONGEST - now)
        end
    end
    return wait
end

local left = 0
if state ~= 'active' then
    left = FORCE and 0 or math.max(0, tonumber(till) - now, wait_for_brokers())
    if left == 0 then
        state = 'active'
        end_quarantine(BASE, base)
    end
end
return {now, state, left}
