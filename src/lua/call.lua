-- call: the beginning of the scripts that create something, or whose answer is a vote: why nothing may be done, as an
-- error. The text of each carries the id of this run of the server, so that a restarted one does not know the script
-- (safety R5).
-- A broker numbers its calls, and holdfast:master remembers the last one of each broker that took or released something
-- (`last:<broker>`): a late copy of an earlier call does nothing. So what a broker has released cannot come back to life
-- (safety R2).
-- What has gone as nearly always is answered in brief, as one text: the time in s and us, and the number of the call.
-- Numbers come as text. Arithmetic makes numbers of it faster than tonumber() does, and to compare it as text is slow in
-- many locales.
-- Nearly always this is the run that the mark tells of, it is active, and nothing rare is there (rare.lua): then
-- holdfast:master's `ready` is the id of the run. One field is asked for instead of three, because each takes its time.
-- Only acquire writes it; who ends one of the three deletes it in the same step.
local RUN_ID = '@RUN_ID@'
local call, KEYS, ARGV = redis.call, KEYS, ARGV -- locals are found faster
local CALL, LAST = ARGV[2] + 0, 'last:' .. ARGV[3]
local clock = call('TIME')
local now = clock[1] * 1000 + clock[2] / 1000
now = now - now % 1
local master = call('HMGET', 'holdfast:master', 'ready', LAST, 'base')
local BRIEF = clock[1] .. ' ' .. clock[2] .. ' ' .. ARGV[2]
local run_id, state, may_be_rare = master[1], 'active', false
if run_id ~= RUN_ID then
    local mark = call('HMGET', 'holdfast:master', 'run_id', 'state', 'rare')
    run_id, state, may_be_rare = mark[1], mark[2], (mark[3] or 0) - now >= 0
end
if (ARGV[1] or '') ~= '' and now - ARGV[1] > 0 then
    return redis.error_reply('LATE the request came after its deadline')
elseif run_id ~= RUN_ID then
    return redis.error_reply('STRANGER this server has lost its data')
elseif CALL - (master[2] or 0) < 0 then
    return redis.error_reply('REPEATED a later call of this broker has come before')
end
