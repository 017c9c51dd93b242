-- call: the beginning of the scripts that create something, or whose answer is a vote: why nothing may be done, as an
-- error. The text of each carries the id of this run of the server, so that a restarted one does not know the script
-- (safety R5).
-- A broker numbers its calls, and holdfast:master remembers the last one of each broker that took or released something
-- (`last:<broker>`): a late copy of an earlier call does nothing. So what a broker has released cannot come back to life
-- (safety R2).
-- Numbers come as text. Arithmetic makes numbers of it faster than tonumber() does, and to compare it as text is slow in
-- many locales.
local RUN_ID = '@RUN_ID@'
local CALL, LAST = ARGV[2] + 0, 'last:' .. ARGV[3]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + clock[2] / 1000
now = now - now % 1
local master = redis.call('HMGET', 'holdfast:master', 'run_id', 'state', LAST, 'rare', 'base')
if (ARGV[1] or '') ~= '' and now - ARGV[1] > 0 then
    return redis.error_reply('LATE the request came after its deadline')
elseif master[1] ~= RUN_ID then
    return redis.error_reply('STRANGER this server has lost its data')
elseif CALL - (master[3] or 0) < 0 then
    return redis.error_reply('REPEATED a later call of this broker has come before')
end
