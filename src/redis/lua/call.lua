-- call: the beginning of the scripts that create something, or whose answer is a vote: why nothing may be done, as an
-- error. The text of each carries the id of this run of the server, so that a restarted one does not know the script
-- (safety R5), and the digest of the settings of its broker, so that one with others than are in force here, or from before
-- they were changed (MASTER ADOPT), is refused by each call (R6).
-- A broker numbers its calls, and holdfast:master remembers the last one of each broker that took or released something
-- (`last:<broker>`): a late copy of an earlier call does nothing. So what a broker has released cannot come back to life
-- (safety R2).
-- What has gone as nearly always is answered in brief, as one text: the time in s and us, and the number of the call.
-- Numbers come as text. Arithmetic makes numbers of it faster than tonumber() does, and to compare it as text is slow in
-- many locales.
-- Nearly always this is the run that the mark tells of, it is active, and nothing rare is there (rare.lua): then
-- holdfast:master's `ready` is the id of the run and the digest. One field is asked for instead of four, because each takes
-- its time. Only acquire writes it; who ends one of the four deletes it in the same step.
local READY, RUN_ID, SETTINGS = '@RUN_ID@/@SETTINGS@', '@RUN_ID@', '@SETTINGS@'
local call, KEYS, ARGV = redis.call, KEYS, ARGV -- locals are found faster
local CALL, LAST = ARGV[2] + 0, 'last:' .. ARGV[3]
local clock = call('TIME')
local now = clock[1] * 1000 + clock[2] / 1000
now = now - now % 1
local master = call('HMGET', 'holdfast:master', 'ready', LAST, 'base')
local BRIEF = clock[1] .. ' ' .. clock[2] .. ' ' .. ARGV[2]
local run_id, settings, state, may_be_rare = RUN_ID, SETTINGS, 'active', false
if master[1] ~= READY then
    local mark = call('HMGET', 'holdfast:master', 'run_id', 'digest', 'state', 'rare')
    run_id, settings, state, may_be_rare = mark[1], mark[2], mark[3], (mark[4] or 0) - now >= 0
end
if (ARGV[1] or '') ~= '' and now - ARGV[1] > 0 then
    return redis.error_reply('LATE the request came after its deadline')
elseif run_id ~= RUN_ID then
    return redis.error_reply('STRANGER this server has lost its data')
elseif settings ~= SETTINGS then
    return redis.error_reply('SETTINGS other settings than those of this broker are in force here')
elseif CALL - (master[2] or 0) < 0 then
    return redis.error_reply('REPEATED a later call of this broker has come before')
end
