-- exchange: the operations of programs that take their locks by plain commands or by scripts of their own (drop-in). Each
-- item looks at what stands under a key, changes it, or ends it, on the condition that this is what its broker expects.
--
-- A drop-in hold is a hold (hold.lua) whose owner is a state, as text. Each change is written under an operation of its own,
-- so the operation alone says that nothing has changed: neither value nor time. Which of a hold's changes is the later one
-- its version says: <token>.<number>/<birth>, the number being one more with each change, and birth the operation that took
-- it, which no other hold has. The token of a version is only a floor, and two brokers may have asked with the same one.
--
-- KEYS   one lock an item
-- ARGV   deadline call broker, as acquire.lua; then an item: hold wish; then, for a quorum, or when an item takes a token:
--        lowest highest, of those that do; then, for a quorum: counters, one for each item, whether it takes a token or not
--          hold     "": it is only looked at; "-": it is ended; else what is to stand there
--          wish     what is expected, and what else there is to say. "free": nothing stands there and nobody has a share;
--                   "op=<id> ", as a hold begins: a hold of that very operation; "t op=<id> ": its time to live is asked
--                   for, too. Of a hold that is to be written: its lease in ms: nothing stands there, the token is new;
--                   or "lease=<ms> op=<id> ": over that operation, whose token is kept; lease 0: and its time to live
--                   (R18: what is known of that is less than there is). Or all of these, as WISH below has
--                   them (exchange_general.lua):
--            expect   "free", or an operation
--            lease    ms; of "heal" and "back", which may come late, the time of this server at which it ends
--            token    "new": raised as acquire.lua does; "kept": as it is there, or as `hold` says if that is higher
--            tomb     ms for which the operation that was expected is remembered as gone, also where nothing was; its broker
--                     is told. 0: it is of this broker, no late copy of it can come
--            by       what that tombstone says: an operation that nobody uses twice
--            as       "vote": as above
--                     "heal": what a majority has confirmed already (hold, or end), where a change was missed: over the
--                       operation that was expected, or over a version of the hold of `seq` that is not later than that.
--                       Not where nothing is (plant.lua)
--                     "back": `hold` stood there before, and is put back: over the operation that was expected, or where
--                       nothing is if the tombstone says `by`. Where somebody else has buried it, nothing is left instead
--            seq      of "heal": <token>.<number>/<birth>; "-": it is a hold of its own
--            time     "t": the time to live is asked for; "-"
--            group    "<id>/<k>": of the k items of this group, which stand together, all are done or none; "-": in none
-- Reply  in brief (call.lua), and `above` behind it unless that is 0: each item EXCHANGE_DONE above 0 "". Or {time, call,
--        code, value, left, text, ...}:
--          EXCHANGE_DONE above left ""     above: of a new token, above the one that `hold` has. left: the time to live that
--                                          was asked for; of an end for a quorum: how many tickets stand in the line, of
--                                          which one may be called up (with one server that has been done)
--          EXCHANGE_OTHER 0 left text      this hold stands there for so many ms; "": nothing does
--          EXCHANGE_SHARED 0 left ""       readers or permits have it, for so many ms at most
--          EXCHANGE_FOREIGN 0 left ""      the key is no lock; left 0: for ever
--          EXCHANGE_PLAIN 0 left text      a plain key of somebody else is there (mirror.lua), which is this as a state
--          EXCHANGE_GONE 0 0 ""            the operation of `hold` has ended
--          EXCHANGE_ALL_NEEDED 0 left ""   as expected, but another item of the group is not
-- Twice  the same operation again is answered alike and changes nothing. What was ended is not there any more.
local HEAD, WIDTH, LEASE_DIGITS, n = 3, 2, 13, #KEYS
local BEHIND = HEAD + WIDTH * n
local LOWEST, HIGHEST, names = ARGV[BEHIND + 1], ARGV[BEHIND + 2], ARGV[BEHIND + 3]
local WANTS_TOKEN = LOWEST
--@ call.lua
--@ vote.lua
--@ ahead.lua
--@ codes EXCHANGE_DONE
if HIGHEST and HIGHEST - MOST_ASKED > 0 then
    return redis.error_reply(AHEAD)
end

--@ mirror mirror.lua
local TOKEN = ' token=(%d+) '
local base, above, base_after, raise, count, counter_of, last_of, counted -- the last: counter, token, counter, token, ...

-- Has one of these operations ended, or has somebody a share of one of these locks? As in acquire.lua.
local rare = false
if may_be_rare then
    --@ hold.lua
    --@ rare.lua
    local keys = {}
    for i = 1, n do
        local op = ARGV[HEAD + WIDTH * i - 1]:match(OP)
        keys[#keys + 1] = KEYS[i] .. ':shares'
        keys[#keys + 1] = op and gone_key(KEYS[i], op)
    end
    rare = call('EXISTS', unpack(keys)) > 0
end
--@ mirror rare = rare or has_foreign

-- Nearly always an item is alone in its group and what is expected is there: served here, as in acquire.lua; what stands there is
-- asked for all items at once, and all that ends is ended at once, as each call of Redis takes its time. All others are served by
-- general(), which goes on from what is written by then. What has been written since it was asked for is in `stale`; tokens are
-- looked at by the first item that may need one. (These locals, and no more for an item, as each takes its time too.)
local pcall, find, last, n_ended = redis.pcall, string.find, HEAD, 0
local taken, changes, reply, general, texts, stale, ended, lines, waiting, is_twice
for i = 1, n do
    local hold, wish, done, left = ARGV[last + 1], ARGV[last + 2]
    last = last + WIDTH
    if not rare then
        --@ exchange_usual.lua
    end
    if not done then
        local code, value, text = EXCHANGE_DONE, 0, ''
        if not left then
            --@ exchange_flush.lua
            if LOWEST and not base then
                --@ acquire_token.lua
            end
            if not general then
                local function make_general()
                    --@ exchange_general.lua
                end
                general = make_general()
            end
            code, value, left, text = general(i)
            changes, stale = changes or hold ~= '', stale or {}
            stale[KEYS[i]] = true
        end
        local at = 4 * i
        reply = reply or {now, CALL}
        reply[at - 1], reply[at], reply[at + 1], reply[at + 2] = code, value, left, text
    end
end
--@ exchange_end.lua
if reply or waiting then -- waiting: how many tickets stand in the line of what was ended, for a quorum
    reply = reply or {now, CALL}
    for i = 1, n do
        local at = 4 * i
        if not reply[at] then
            reply[at - 1], reply[at], reply[at + 1], reply[at + 2] = EXCHANGE_DONE, above or 0, 0, ''
        end
        reply[at + 1] = waiting and waiting[KEYS[i]] or reply[at + 1]
    end
end

-- From now on no copy of an earlier call of this broker changes anything. Comes behind all that is ended, as in release.lua.
if changes or taken then
    --@ mirror mirror_end.lua
    if master[1] ~= READY and not may_be_rare and not rare then -- ready again (call.lua)
        call('HSET', 'holdfast:master', 'ready', READY)
    end
    if counted then
        call('HSET', 'holdfast:master', LAST, ARGV[2], unpack(counted))
    elseif taken then
        call('HSET', 'holdfast:master', LAST, ARGV[2], 'base', base_after)
    else
        call('HSET', 'holdfast:master', LAST, ARGV[2])
    end
end
if is_twice then
    return redis.error_reply('TWICE a lock was ended twice in one call')
end
return reply or (above or 0) == 0 and BRIEF or BRIEF .. string.format(' %.0f', above)
