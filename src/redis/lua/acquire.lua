-- acquire: takes locks for their owners: as a whole, as a reader, or one of n permits. Takes each that is free, and each that
-- is still held under the operation `prev`, which this ends (a hand-over: owner, operation and token change in one step).
--
-- KEYS   one lock an item
-- ARGV   deadline call broker; then an item: hold wish; then: lowest highest; then, for a quorum: counters
--          deadline  this server's time in ms, after which nothing is created; "" or absent: none
--          call      number of this call, higher than those of all earlier calls of this broker. The reply repeats it, so
--                    that no answer is taken for that of another call
--          hold      as it is to be written (hold.lua): with the id of this operation, which nobody uses twice; with the
--                    lowest token allowed, called floor below; and with a count of 1, whose version is the floor too. So
--                    of two holds' counts the later one has the later version
--          wish      the lease in ms: the lock as a whole, and nothing else to say. Or all of these, as WISH below has them
--                    (acquire_wish.lua):
--            lease     ms
--            prev      operation whose hold is replaced: an exclusive one, or that of this very permit; "-": none
--            tomb      ms for which `prev` is remembered as gone, also where it was not; 0: no late copy of it can come
--            ticket    whom to call up when the lock comes free: "<broker>", or "<broker>/<n>" for one request that wants
--                      strict order: it gets a free lock only when it is its turn, or when its owner has the lock in
--                      another way already (nobody before it can get the lock then); "-": nobody waits
--            place     where the ticket lines up when the lock is refused (line_up.lua); "front": it has been called up
--            judge     run id of the server whose line decides on turns; "-": this one's
--            maxhold   ms after which the hold ends, however often it is renewed; 0: never. For a broker that takes it over
--            mode      "x" the lock as a whole; "s" as a reader; "<n>:<i>" permit i (from 0) of n
--            group     "<id>/<k>": the k items of this group, which stand together, are taken all or none; "-": in none
--          lowest    floor of the first item's token; `highest`: of the last one's. They ascend from item to item
--          counters  counter of each item's token, with blanks between; absent: `base` for all (redis/token.h)
-- Reply  in brief (call.lua), and `above` behind it unless that is 0: each item ACQUIRE_TAKEN above 0. Or {time, call, code,
--        value, line, ...}; line: how many tickets stand in the line, counted for hand-overs and those with a ticket, else 0.
--          ACQUIRE_TAKEN above         held under op; its token is so much above floor
--          ACQUIRE_HELD ms             held by another owner for so long; 0: free, and another one's turn
--          ACQUIRE_SAME_OWNER ms       held by this owner for so long, under an operation of another broker
--          ACQUIRE_OTHER_PERMIT i      this permit is taken, permit i is free
--          ACQUIRE_GONE 0              op was released or undone before it came, or is older than what holds
--          ACQUIRE_FOREIGN 0           the key is no lock: somebody else has written there
--          ACQUIRE_OTHER_KIND n        in use as n permits, or see enum in_use_code (codes.h)
--          ACQUIRE_DEADLOCK 0          a reader wants it alone, as another reader does: neither would ever get it
--          ACQUIRE_ALL_NEEDED 0        free, but another item of the group is not
-- Twice  the same op again gets the same token and changes nothing. What the same owner has under an older acquire of the
--        same broker is replaced: that is a try that came late or was given up (the broker asks only while the owner has no
--        hold).
--
-- An exclusive hold stands under the key of the lock (hold.lua), a share under a key of its own (shares.lua).
local HEAD, WIDTH, LEASE_DIGITS, WANTS_TOKEN = 3, 2, 13, true
--@ call.lua
--@ vote.lua
--@ ahead.lua
--@ codes ACQUIRE_TAKEN
local n = #KEYS
local BEHIND = HEAD + WIDTH * n
local LOWEST, HIGHEST, names = ARGV[BEHIND + 1], ARGV[BEHIND + 2], ARGV[BEHIND + 3]
if HIGHEST - MOST_ASKED > 0 then
    return redis.error_reply(AHEAD)
end
if master[1] ~= READY and not may_be_rare then -- ready again (call.lua)
    call('HSET', 'holdfast:master', 'ready', READY)
end

--@ mirror mirror.lua
local TOKEN = ' token=(%d+) '
local base, above, base_after, raise, count, counter_of, last_of, counted -- the last: counter, token, counter, token, ...
--@ acquire_token.lua

-- Has one of these operations ended, or has somebody a share of one of these locks? Nearly always not; then nothing here
-- looks for them one by one.
local rare = false
if may_be_rare then
    --@ hold.lua
    --@ rare.lua
    local keys = {}
    for i = 1, n do
        keys[2 * i - 1] = gone_key(KEYS[i], ARGV[HEAD + WIDTH * i - 1]:match(OP))
        keys[2 * i] = KEYS[i] .. ':shares'
    end
    rare = call('EXISTS', unpack(keys)) > 0
end
--@ mirror rare = rare or has_foreign

-- Nearly always all items are usual: locks as a whole that nobody has. They are served here and answered in brief. All others
-- are served by general(), and a hand-over by a shorter way. What a call does not need is not made, because to make functions
-- and tables takes longer than to serve a lock; and a usual item is not given what only others need: code, value and line.
local pcall, taken, reply, general = redis.pcall, false, nil, nil
for i = 1, n do
    local last = HEAD + WIDTH * i
    local hold, wish = ARGV[last - 1], ARGV[last]
    local code, value, line
    if raise and above then
        hold = raise(hold, above)
    end
    if above and not rare and #wish <= LEASE_DIGITS and not pcall('SET', KEYS[i], hold, 'NX', 'GET', 'PX', wish) then
        taken = true
        if names then
            count(i, hold)
        end
    else
        if above and not rare and #wish > LEASE_DIGITS then
            --@ acquire_hand_over.lua
        end
        if not code then
            if not general then
                local function make_general()
                    --@ acquire_general.lua
                end
                general = make_general()
            end
            code, value, line = general(i)
        end
        if not reply and (general or line > 0) then
            reply = {now, CALL}
            for j = 1, i - 1 do
                reply[3 * j], reply[3 * j + 1], reply[3 * j + 2] = ACQUIRE_TAKEN, above, 0
            end
        end
    end
    if reply then
        reply[3 * i], reply[3 * i + 1], reply[3 * i + 2] = code or ACQUIRE_TAKEN, value or above, line or 0
    end
end

--@ mirror mirror_end.lua
if names then
    call('HSET', 'holdfast:master', LAST, ARGV[2], unpack(counted))
else
    call('HSET', 'holdfast:master', LAST, ARGV[2], 'base', taken and base_after or base)
end
return reply or above == 0 and BRIEF or BRIEF .. string.format(' %.0f', above)
