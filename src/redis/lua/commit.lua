-- commit: raises the token of a hold to the one that its majority agreed on. Only where the hold still
-- carries this very operation, and never downwards: written elsewhere, or lowered, the same token
-- could be granted twice. A share is given no token that this server may have given to another one,
-- for two of them may be committed at the same time: of the same token only one gets a majority.
--
-- KEYS   one lock an item
-- ARGV   deadline call broker; then an item: op token counter part    (part: as in release.lua)
-- Reply  {time, call, code, value, ...}:
--          1 token   the hold has this token now
--          2 token   the hold has this larger one: raise yours and commit again
--          0 0       the hold is not there any more under op
-- Twice  the same again changes nothing.
--@ call.lua
--@ vote.lua
--@ hold.lua
--@ rare.lua
--@ shares.lua
local WIDTH = 4

local reply = {now, CALL}
for i = 1, #KEYS do
    local a = 3 + (i - 1) * WIDTH
    local op, token, counter, part = ARGV[a + 1], tonumber(ARGV[a + 2]), ARGV[a + 3], ARGV[a + 4]
    local key = hold_key(KEYS[i], part)
    local held = read(key)
    local code, value = 0, 0
    if held and held.op == op then
        local last = tonumber(redis.call('HGET', 'holdfast:master', counter)) or 0
        value = tonumber(held.token)
        code = value > token and 2 or 1
        if value < token then
            local shared = part ~= '-' or redis.call('EXISTS', KEYS[i] .. ':shares') == 1
            if shared and last >= token then
                token, code = last + 1, 2
            end
            value = token
            held.token = string.format('%.0f', token)
            write(key, held, 'KEEPTTL')
        end
        if last < value then
            redis.call('HSET', 'holdfast:master', counter, held.token)
        end
    end
    reply[#reply + 1] = code
    reply[#reply + 1] = value
end
return reply
