-- acquire: takes each lock that is free, or that is still held under the operation `prev`, which this
-- ends (a hand-over: owner, operation and token change in one step).
--
-- KEYS   one lock an item
-- ARGV   deadline call; then an item: op prev tomb owner lease floor bucket ticket place judge
--          deadline  this server's time in ms; after it nothing is created ("" or absent: none)
--          call      any number, returned in the reply, so that no answer is taken for that of another call
--          op        id of this operation, never used twice by anybody
--          prev      operation whose hold may be replaced; "-": none
--          tomb      ms for which `prev` is remembered as gone; 0: no late copy of it can be under way
--          lease     ms
--          floor     lowest token allowed
--          bucket    field of the token counter
--          ticket    who is to be called up when the lock comes free: "<broker>", or "<broker>/<n>" for one
--                    request that wants strict order: it gets a free lock only when it is its turn; "-": nobody waits
--          place     when it is refused: "tail" lines the ticket up behind the others, "front" before them, "keep"
--                    leaves it where it stands
--          judge     run id of the server whose line decides on turns; "-": this one's
-- Reply  {time, call, code, value, line, ...}; line is how many tickets stand in the line (counted for those with a ticket
--        and for hand-overs, else 0); code and value of each item:
--          1 token   held under op
--          0 pttl    held by somebody else, for so many ms; 0: it is free, and another one's turn
--          2 pttl    held by the same owner under another operation
--         -1 0       op has been released or undone before it came
--         -2 0       the key is no lock: somebody else has written there
-- Twice  the same op again gets the same token and changes nothing.
-- The line of a lock is a list of tickets, first come first; see call_up.lua.
-- A lock is a hash that people can read; a token counter never goes back, and has no time to live.
--@ vote.lua
--@ call_up.lua
--@ line_up.lua
local WIDTH = 10

local fields = {'run_id', 'state', 'base'}
for i = 1, #KEYS do
    fields[3 + i] = ARGV[2 + (i - 1) * WIDTH + 7]
end
local master = redis.call('HMGET', 'holdfast:master', unpack(fields))
local no = refusal(master)
if no then
    return no
end

local base = tonumber(master[3]) or 0
local counters, changed = {}, {}
for i = 1, #KEYS do
    counters[fields[3 + i]] = tonumber(master[3 + i]) or 0
end

-- Is it the turn of this ticket? If it is nobody's, the first one is called up.
local function is_turn(key, ticket)
    local turn = redis.call('GET', key .. ':turn')
    if not turn then
        local first = redis.call('LINDEX', key .. ':line', 0)
        if not first or first == ticket then
            return true
        end
        call_up(key)
        turn = redis.call('GET', key .. ':turn')
    end
    return turn == ticket
end

local reply = {now, tonumber(ARGV[2])}
for i = 1, #KEYS do
    local key, a = KEYS[i], 2 + (i - 1) * WIDTH
    local op, prev, owner = ARGV[a + 1], ARGV[a + 2], ARGV[a + 4]
    local ticket, place, judge = ARGV[a + 8], ARGV[a + 9], ARGV[a + 10]
    local line = key .. ':line'
    local length = 0
    if ticket ~= '-' or prev ~= '-' then
        length = redis.call('LLEN', line)
    end
    local held = redis.pcall('HMGET', key, 'op', 'token', 'owner')
    local code, value
    if held.err then
        code, value = -2, 0
    elseif held[1] == op then
        code, value = 1, tonumber(held[2])
    elseif held[1] and held[1] ~= prev then
        code, value = held[3] == owner and 2 or 0, redis.call('PTTL', key)
    elseif redis.call('EXISTS', key .. ':gone:' .. op) == 1 then
        code, value = -1, 0
    elseif ticket:find('/', 1, true) and (judge == '-' or judge == RUN_ID) and not is_turn(key, ticket) then
        code, value = 0, 0
    else
        local tomb, lease, bucket = ARGV[a + 3], ARGV[a + 5], ARGV[a + 7]
        if held[1] and tomb ~= '0' then
            redis.call('SET', key .. ':gone:' .. prev, '', 'PX', tomb)
        end
        value = math.max(counters[bucket] + 1, base + 1, tonumber(ARGV[a + 6]))
        code = 1
        counters[bucket] = value
        changed[#changed + 1] = bucket
        changed[#changed + 1] = value
        redis.call('HSET', key, 'kind', 'exclusive', 'owner', owner, 'count', '1', 'seq', '0',
                   'token', value, 'op', op, 'lease', lease)
        redis.call('PEXPIRE', key, lease)
    end
    if ticket ~= '-' then
        if code == 1 and length > 0 then
            length = length - redis.call('LREM', line, ticket:find('/', 1, true) and 1 or 0, ticket)
        elseif code == 0 then
            line_up(key, ticket, place)
        end
    end
    reply[#reply + 1] = code
    reply[#reply + 1] = value
    reply[#reply + 1] = length
end
if #changed > 0 then
    redis.call('HSET', 'holdfast:master', unpack(changed))
end
return reply
