-- vote: part of the scripts whose answer is a vote, or that create something. The text of each carries the id of
-- this run of the server, so that a restarted one does not know the script (safety R5).
-- A broker numbers its calls, and holdfast:master remembers the last one of each broker that took or released something
-- (`last:<broker>`): a late copy of an earlier call does nothing. So what a broker has released cannot come back to life
-- (safety R2).
local RUN_ID = '@RUN_ID@'
local CALL, LAST = tonumber(ARGV[2]), 'last:' .. ARGV[3]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Why nothing may be done, as an error; nil: it may. mark: run_id, state and LAST of holdfast:master.
local function refusal(mark)
    local deadline = tonumber(ARGV[1])
    if deadline and now > deadline then
        return redis.error_reply('LATE the request came after its deadline')
    end
    if mark[1] ~= RUN_ID then
        return redis.error_reply('STRANGER this server has lost its data')
    end
    if CALL < tonumber(mark[3] or 0) then
        return redis.error_reply('REPEATED a later call of this broker has come before')
    end
    if mark[2] ~= 'active' then
        return redis.error_reply('QUARANTINE this server may not vote yet')
    end
end
