-- commit: raises the token of a hold to the one that its majority agreed on (safety R4). Only where the hold is still under
-- this very operation, and never downwards: a token that is written elsewhere, or lowered, could be granted twice. A share
-- gets no token that this server may have given to another share, because two of them may be committed at the same time: of
-- the same token only one gets a majority.
--
-- KEYS   one lock an item
-- ARGV   deadline call broker; then an item: op token counter part    (part: see shares.lua)
-- Reply  {time, call, code, value, ...}:
--          COMMIT_WRITTEN token   the hold has this token now
--          COMMIT_LARGER token    the hold has this larger one: the broker raises its own and commits again
--          COMMIT_MISSING 0       the hold is not there any more under op
-- Twice  the same again changes nothing.
local WANTS_TOKEN = false
--@ call.lua
--@ vote.lua
--@ hold.lua
--@ rare.lua
--@ shares.lua
--@ counter.lua
--@ codes commit
local HEAD, WIDTH = 3, 4

-- Raises the token of a hold: code and value.
local function commit(key, hold, held, token, counter, part)
    local last, own = last_token(counter), tonumber(held.token)
    local code, value = own > token and COMMIT_LARGER or COMMIT_WRITTEN, math.max(own, token)
    if own < token then
        local shared = part ~= '-' or call('EXISTS', key .. ':shares') == 1
        if shared and last >= token then
            code, value = COMMIT_LARGER, last + 1
        end
        held.token = string.format('%.0f', value)
        write(hold, held, 'KEEPTTL')
    end
    if last < value then
        count_to(counter, value)
    end
    return code, value
end

local reply = {now, CALL}
for i = 1, #KEYS do
    local first = HEAD + WIDTH * (i - 1) + 1
    local op, token, counter, part = unpack(ARGV, first, first + WIDTH - 1)
    local hold, code, value = hold_key(KEYS[i], part), COMMIT_MISSING, 0
    local held = read(hold)
    if held and held.op == op then
        code, value = commit(KEYS[i], hold, held, tonumber(token), counter, part)
    end
    reply[2 * i + 1], reply[2 * i + 2] = code, value
end
return reply
