-- acquire: takes each lock that is free, or that is still held under the operation `prev`, which this
-- ends (a hand-over: owner, operation and token change in one step).
--
-- KEYS   one lock an item
-- ARGV   deadline call; then an item: op prev tomb owner lease floor bucket ticket place judge maxhold
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
--          maxhold   ms after which it is nobody's, however often it is renewed; 0: none. For a broker that takes it over
-- Reply  {time, call, code, value, line, ...}; line is how many tickets stand in the line (counted for those with a ticket
--        and for hand-overs, else 0); code and value of each item:
--          1 token   held under op
--          0 pttl    held by somebody else, for so many ms; 0: it is free, and another one's turn
--          2 pttl    held by the same owner under an operation of another broker
--         -1 0       op has been released or undone before it came, or is older than what holds
--         -2 0       the key is no lock: somebody else has written there
-- Twice  the same op again gets the same token and changes nothing.
-- What the same owner has under an older acquire of the same broker is a try that came late, or one that it has given
-- up (it asks only while it has no hold): it is replaced.
-- The count begins at the version `floor`, so that of two holds' counts the later one has the higher version.
-- The line of a lock is a list of tickets, first come first; see call_up.lua.
-- A lock is a hash that people can read; a token counter never goes back, and has no time to live.
--@ vote.lua
--@ call_up.lua
--@ line_up.lua
--@ older.lua
local WIDTH = 11
local call, pcall = redis.call, redis.pcall

local fields, gone = {'run_id', 'state', 'base'}, {}
for i = 1, #KEYS do
    local a = 2 + (i - 1) * WIDTH
    fields[3 + i] = ARGV[a + 7]
    gone[i] = KEYS[i] .. ':gone:' .. ARGV[a + 1]
end
local master = call('HMGET', 'holdfast:master', unpack(fields))
local no = refusal(master)
if no then
    return no
end

local base = tonumber(master[3]) or 0
local any_gone = call('EXISTS', unpack(gone)) > 0
local counters, changed = {}, {}
for i = 1, #KEYS do
    counters[fields[3 + i]] = tonumber(master[3 + i]) or 0
end

-- Is it the turn of this ticket? If it is nobody's, the first one is called up.
local function is_turn(key, ticket)
    local turn = call('GET', key .. ':turn')
    if not turn then
        local first = call('LINDEX', key .. ':line', 0)
        if not first or first == ticket then
            return true
        end
        call_up(key)
        turn = call('GET', key .. ':turn')
    end
    return turn == ticket
end

local reply = {now, tonumber(ARGV[2])}
local n, m = 2, 0
for i = 1, #KEYS do
    local key, a = KEYS[i], 2 + (i - 1) * WIDTH
    local op, prev, tomb, owner, lease, floor, bucket, ticket, place, judge, maxhold =
        unpack(ARGV, a + 1, a + WIDTH)
    local length = 0
    if ticket ~= '-' or prev ~= '-' then
        length = call('LLEN', key .. ':line')
    end
    local held = pcall('HGET', key, 'op')
    local code, value
    if type(held) == 'table' then -- an error
        code, value = -2, 0
    elseif held == op then
        code, value = 1, tonumber(call('HGET', key, 'token'))
    elseif held and held ~= prev then
        local its = call('HMGET', key, 'owner', 'taken')
        local relation = its[1] == owner and age(op, held)
        if relation == 'older' then
            code, value = -1, 0
        elseif relation ~= 'newer' or its[2] then
            code, value = relation ~= false and 2 or 0, call('PTTL', key)
        end
    end
    if not code then
        if any_gone and call('EXISTS', gone[i]) == 1 then
            code, value = -1, 0
        elseif ticket:find('/', 1, true) and (judge == '-' or judge == RUN_ID) and not is_turn(key, ticket) then
            code, value = 0, 0
        else
            if held == prev and tomb ~= '0' then
                call('SET', key .. ':gone:' .. prev, '', 'PX', tomb)
            end
            if held then
                call('HDEL', key, 'end', 'taken')
            end
            -- the floor, nearly always: it is text already, and Redis is slow to make text of a number
            local token, least = floor, math.max(counters[bucket], base) + 1
            value = tonumber(floor)
            if value < least then
                value = least
                token = string.format('%.0f', least)
            end
            code = 1
            counters[bucket] = value
            changed[m + 1] = bucket
            changed[m + 2] = token
            m = m + 2
            call('HSET', key, 'kind', 'exclusive', 'owner', owner, 'count', '1', 'seq', floor, 'token', token, 'op', op,
                 'lease', lease)
            if maxhold ~= '0' then
                call('HSET', key, 'end', now + tonumber(maxhold))
            end
            call('PEXPIRE', key, lease)
        end
    end
    if ticket ~= '-' then
        if code == 1 and length > 0 then
            length = length - call('LREM', key .. ':line', ticket:find('/', 1, true) and 1 or 0, ticket)
        elseif code == 0 then
            line_up(key, ticket, place)
        end
    end
    reply[n + 1], reply[n + 2], reply[n + 3] = code, value, length
    n = n + 3
end
if m > 0 then
    call('HSET', 'holdfast:master', unpack(changed))
end
return reply
