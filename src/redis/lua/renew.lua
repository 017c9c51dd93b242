-- renew: extends holds, and writes how often each has been entered. It never creates a hold.
--
-- KEYS   one lock an item
-- ARGV   deadline call broker; then an item: what lease
--          what    op: an exclusive hold, of whose count there is nothing to say. Or op, and all of these, as WHAT below has
--                  them:
--            count   absolute, from the one broker that has the hold
--            seq     version of the count (hold.lua), which is written only when it is later than what is there
--            part    of the lock (shares.lua)
--          lease   ms from now, where that is more than what is left; 0: the time to live stays. "=<ms>": exactly that, also
--                  when it is less, with a newer seq only: a late copy must not
-- Reply  in brief (call.lua): each item RENEW_HELD; or {time, call, code, ...}:
--          RENEW_HELD     held under op
--          RENEW_MISSING  not there
--          RENEW_OTHER    held under another operation
--          RENEW_MOVED    its owner has taken it over under another operation
--        in quarantine:
--          RENEW_PLANTED    held under op, which was planted in this life; a vote, unless an active server says that somebody
--                           else has it
--          RENEW_EARLY      likewise, and extended; no vote yet: this server may have voted for somebody else before
--          RENEW_FORGOTTEN  op was not planted in this life
-- Twice  the same again changes nothing but the time to live.
local WANTS_TOKEN = false
--@ call.lua
--@ mirror mirror.lua
--@ codes renew
local HEAD, WIDTH, OPERATION = 3, 2, '^op=(%S+) ' -- the last as in hold.lua, which the usual way does without
local general -- made when it is needed: to make functions takes longer than to renew a hold

local texts = call('MGET', unpack(KEYS))
local reply, all = {now, CALL}, true
if state ~= 'active' then
    texts = {} -- no item goes the usual way
end
for i = 1, #KEYS do
    local text, what, lease = texts[i], ARGV[HEAD + WIDTH * i - 1], ARGV[HEAD + WIDTH * i]
    local code = RENEW_HELD
    --@ mirror if plain[i].foreign then code = RENEW_OTHER else
    if text and text:match(OPERATION) == what then
        call('PEXPIRE', KEYS[i], lease, 'GT') -- GT: never shorter, and not by 0 either
    else
        if not general then
            local function make_general()
                --@ renew_general.lua
            end
            general = make_general()
        end
        code = general(KEYS[i], what, lease)
    end
    --@ mirror end
    reply[i + 2], all = code, all and code == RENEW_HELD
end
--@ mirror mirror_end.lua
return all and BRIEF or reply
