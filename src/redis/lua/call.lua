-- call: part of the scripts that create something or whose answer is a vote; stands at their beginning. Refuses a call that
-- must not run, by an error whose first word says why.
--
-- The text of each script carries the run id of this server, so that a restarted server does not know it (safety R5), and the
-- digest of its broker's settings, so that each call of a broker with other settings than those in force, or than those from
-- before MASTER ADOPT, is refused (R6).
--
-- A broker numbers its calls, and holdfast:master keeps the number of the last one of each broker that took or released
-- something (`last:<broker>`). A late copy of an earlier call is refused, so what a broker has released cannot come back to
-- life (R2).
--
-- Nearly always the mark is of this run, these settings are in force, the state is active, and nothing rare is there
-- (rare.lua). Then `ready` in holdfast:master is the run id and the digest, and this one field is read instead of four,
-- because each takes its time. Only acquire and exchange write `ready`; a script that ends one of the four deletes it in the same step.
--
-- BRIEF is the reply when all went as nearly always, as one text: the time in s and us, and the number of the call.
--
-- WANTS_TOKEN: says whether `base` is asked for, too.
--
-- Numbers arrive as texts. Arithmetic makes numbers of them faster than tonumber() does; a comparison of texts is slow in
-- many locales.
local READY, RUN_ID, SETTINGS = '@RUN_ID@/@SETTINGS@', '@RUN_ID@', '@SETTINGS@'
local KEYS, ARGV = KEYS, ARGV -- locals are found faster
local CALL, LAST = ARGV[2] + 0, 'last:' .. ARGV[3]
--@ now.lua
if (ARGV[1] or '') ~= '' and now - ARGV[1] > 0 then
    return redis.error_reply('LATE the request came after its deadline')
end
local master = WANTS_TOKEN and call('HMGET', 'holdfast:master', 'ready', LAST, 'base')
    or call('HMGET', 'holdfast:master', 'ready', LAST)
local BRIEF = clock[1] .. ' ' .. clock[2] .. ' ' .. ARGV[2]
local state, may_be_rare = 'active', false
if master[1] ~= READY then
    local mark = call('HMGET', 'holdfast:master', 'run_id', 'digest', 'state', 'rare')
    state, may_be_rare = mark[3], (mark[4] or 0) - now >= 0
    if mark[1] ~= RUN_ID then
        return redis.error_reply('STRANGER this server has lost its data')
    elseif mark[2] ~= SETTINGS then
        return redis.error_reply('SETTINGS other settings than those of this broker are in force here')
    end
end
if CALL - (master[2] or 0) < 0 then
    return redis.error_reply('REPEATED a later call of this broker has come before')
end
