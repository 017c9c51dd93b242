-- acquire: takes each lock, or a share of it, that is free, or that is still held under the operation `prev`, which
-- this ends (a hand-over: owner, operation and token change in one step).
--
-- KEYS   one lock an item
-- ARGV   deadline call; then an item: op prev tomb owner lease floor bucket ticket place judge maxhold mode all
--          deadline  this server's time in ms; after it nothing is created ("" or absent: none)
--          call      any number, returned in the reply, so that no answer is taken for that of another call
--          op        id of this operation, never used twice by anybody
--          prev      operation whose hold may be replaced; "-": none. Of an exclusive hold, or of the very permit
--          tomb      ms for which `prev` is remembered as gone, also where it was not; 0: no late copy of it can be under
--                    way
--          lease     ms
--          floor     lowest token allowed
--          bucket    field of the token counter
--          ticket    who is to be called up when the lock comes free: "<broker>", or "<broker>/<n>" for one
--                    request that wants strict order: it gets a free lock only when it is its turn, or when it has the
--                    lock in another way already (nobody before it can get it then); "-": nobody waits
--          place     when it is refused: see line_up.lua; "front" is for one who has been called up
--          judge     run id of the server whose line decides on turns; "-": this one's
--          maxhold   ms after which it is nobody's, however often it is renewed; 0: none. For a broker that takes it over
--          mode      "x" exclusive; "s" shared; "<n>:<i>" permit i (from 0) of n
--          all       "<group>/<k>": it and the others of this group, which stand beside it, are taken all k or none; "-": it
--                    stands alone
-- Reply  {time, call, code, value, line, ...}; line is how many tickets stand in the line (counted for those with a ticket
--        and for hand-overs, else 0); code and value of each item:
--          1 token   held under op
--          0 pttl    held by somebody else, for so many ms; 0: it is free, and another one's turn
--          2 pttl    held by the same owner under an operation of another broker
--          3 i       this permit is taken, and permit i is not
--         -1 0       op has been released or undone before it came, or is older than what holds
--         -2 0       the key is no lock: somebody else has written there
--         -3 n       it is in use as another kind: n permits; 0: an exclusive lock; -1: a shared one
--         -4 0       reader who wants it alone, as another reader does: neither would ever get it
--         -5 0       free, but another one of those that go with it is not
-- Twice  the same op again gets the same token and changes nothing.
-- What the same owner has under an older acquire of the same broker is a try that came late, or one that it has given
-- up (it asks only while it has no hold): it is replaced.
-- The count begins at the version `floor`, so that of two holds' counts the later one has the higher version.
-- An exclusive hold is a hash that people can read, under the key of the lock; a share is one under a key of its own (see
-- shares.lua). A token counter never goes back, and has no time to live.
--@ vote.lua
--@ call_up.lua
--@ line_up.lua
--@ shares.lua
--@ older.lua
local WIDTH = 13
local call, pcall = redis.call, redis.pcall

local fields, odd = {'run_id', 'state', 'base'}, {}
for i = 1, #KEYS do
    local a = 2 + (i - 1) * WIDTH
    fields[3 + i] = ARGV[a + 7]
    odd[2 * i - 1] = KEYS[i] .. ':gone:' .. ARGV[a + 1]
    odd[2 * i] = KEYS[i] .. ':shares'
end
local master = call('HMGET', 'holdfast:master', unpack(fields))
local no = refusal(master)
if no then
    return no
end

local base = tonumber(master[3]) or 0
-- Does any of these locks have readers, permits, or a tombstone? Seldom, and then each is looked at; so it is when this very
-- call has made one of them.
local any_odd = call('EXISTS', unpack(odd)) > 0
local counters, changed, m = {}, {}, 0
for i = 1, #KEYS do
    counters[fields[3 + i]] = tonumber(master[3 + i]) or 0
end

-- Is it the turn of this ticket? If it is nobody's, the first one is called up.
local function is_turn(key, ticket)
    local turns = key .. ':turn'
    call('ZREMRANGEBYSCORE', turns, '-inf', string.format('%.0f', now))
    if call('ZSCORE', turns, ticket) then
        return true
    elseif call('ZCARD', turns) > 0 then
        return false
    end
    local first = call('LINDEX', key .. ':line', 0)
    if not first or first == ticket then
        return true
    end
    call_up(key)
    return call('ZSCORE', turns, ticket)
end

-- What is held under this key, and not under op nor prev: code and value; nil: a try of this owner that may be replaced, or
-- a hold whose release has not arrived yet: when it does, it is told that it has released.
local function held_against(key, hold, held, op, owner)
    local its = call('HMGET', hold, 'owner', 'taken')
    local relation = its[1] == owner and age(op, held)
    if relation == 'older' then
        return -1, 0
    elseif relation ~= 'newer' or its[2] then
        return its[1] == owner and 2 or 0, call('PTTL', hold)
    end
    call('SET', key .. ':gone:' .. held, 'released', 'PX', math.max(1, call('PTTL', hold)))
end

-- Readers or permits that keep a lock from being taken alone. As below.
local function in_the_way(key, owner, ticket)
    local n = shares(key)
    if n == 0 then
        return
    end
    local limit = limit_of(key)
    if limit then
        return -3, limit
    end
    local own = call('ZSCORE', key .. ':shares', 'r:' .. owner)
    if own and n == 1 then
        return nil, nil, true
    end
    if own then
        local other = call('GET', key .. ':upgrade')
        if other and other ~= owner and call('ZSCORE', key .. ':shares', 'r:' .. other) then
            return -4, 0
        end
        if ticket ~= '-' then
            call('SET', key .. ':upgrade', owner, 'PX', 2000) -- while he asks again and again
        end
    end
    return 0, call('ZREVRANGE', key .. ':shares', 0, 0, 'WITHSCORES')[2] - now
end

-- Each of these says what becomes of an item: code and value; nil: it may be taken. A third value: without asking whose turn
-- it is, because this owner has it already in another way. Nothing that holds is changed before all are judged: what is to
-- be taken over another operation is put down here.
local replaced = {}

local function exclusive(key, a)
    local op, prev, owner = ARGV[a + 1], ARGV[a + 2], ARGV[a + 4]
    local held = pcall('HGET', key, 'op')
    if type(held) == 'table' then -- an error
        return -2, 0
    elseif held == op then
        return 1, tonumber(call('HGET', key, 'token'))
    elseif held and held ~= prev then
        local code, value = held_against(key, key, held, op, owner)
        if code then
            return code, value
        end
    end
    replaced[key] = held
    if not any_odd then
        return
    elseif call('EXISTS', key .. ':gone:' .. op) == 1 then
        return -1, 0
    end
    return in_the_way(key, owner, ARGV[a + 8])
end

local function shared(key, a)
    local op, prev, owner = ARGV[a + 1], ARGV[a + 2], ARGV[a + 4]
    local hold = hold_key(key, 'r:' .. owner)
    local alone = pcall('HMGET', key, 'op', 'owner')
    if alone.err then
        return -2, 0
    end
    local n, limit = shares(key), limit_of(key)
    local mine = call('HGET', hold, 'op')
    if mine == op then
        return 1, tonumber(call('HGET', hold, 'token'))
    elseif call('EXISTS', key .. ':gone:' .. op) == 1 then
        return -1, 0
    elseif mine then
        local code, value = held_against(key, hold, mine, op, owner)
        if code then
            return code, value
        end
        replaced[hold] = mine
    end
    if alone[1] and alone[1] ~= prev and alone[2] ~= owner then
        return 0, call('PTTL', key)
    elseif limit then
        return -3, limit
    elseif n > 0 and ARGV[a + 9] ~= 'front' and call('LLEN', key .. ':line') > 0 then
        return 0, 0 -- whoever waits there may want it alone: readers who come later do not overtake him
    end
    return nil, nil, alone[2] == owner
end

local function permit(key, a)
    local op, prev, owner, slot = ARGV[a + 1], ARGV[a + 2], ARGV[a + 4], ARGV[a + 12]
    local alone = pcall('HGET', key, 'op')
    if type(alone) == 'table' then -- an error
        return -2, 0
    end
    local live, limit = shares(key), limit_of(key)
    local hold = hold_key(key, 's:' .. slot)
    local held = call('HGET', hold, 'op')
    if held == op then
        return 1, tonumber(call('HGET', hold, 'token'))
    elseif call('EXISTS', key .. ':gone:' .. op) == 1 then
        return -1, 0
    elseif alone then
        return -3, 0
    end
    local n, i = slot:match('^(%d+):(%d+)$')
    n, i = tonumber(n), tonumber(i)
    if live > 0 and limit ~= n then
        return -3, limit or -1
    end
    local mine = call('GET', permit_key(key, owner))
    if mine and not (mine == slot and held == prev) then
        local its = hold_key(key, 's:' .. mine)
        local code, value = held_against(key, its, call('HGET', its, 'op') or '', op, owner)
        if code then
            return code, value
        elseif mine == slot then
            replaced[hold] = held
            return
        end
        forget_permit(key, 's:' .. mine) -- a try that came late
        call('DEL', its)
        call('ZREM', key .. ':shares', 's:' .. mine)
        live = live - 1
    end
    if not held or held == prev then
        replaced[hold] = held
        return
    elseif live >= n then
        return 0, call('ZRANGE', key .. ':shares', 0, 0, 'WITHSCORES')[2] - now
    end
    repeat
        i = (i + 1) % n
    until not call('ZSCORE', key .. ':shares', 's:' .. n .. ':' .. i)
    return 3, i
end

local function judge(key, a)
    local ticket, turns, mode = ARGV[a + 8], ARGV[a + 10], ARGV[a + 12]
    local kind = mode == 'x' and exclusive or mode == 's' and shared or permit
    local code, value, has = kind(key, a)
    local judged = ticket:find('/', 1, true) and (turns == '-' or turns == RUN_ID)
    if not code and not has and judged and not is_turn(key, ticket) then
        return 0, 0
    end
    return code, value
end

local function take(key, a)
    local op, prev, tomb, owner, lease, floor, bucket = unpack(ARGV, a + 1, a + 7)
    local maxhold, mode = ARGV[a + 11], ARGV[a + 12]
    local part, kind, hold = '-', 'exclusive', key
    if mode == 's' then
        part, kind = 'r:' .. owner, 'shared'
        if prev ~= '-' and call('HGET', key, 'op') == prev then
            call('DEL', key)
        end
    elseif mode ~= 'x' then
        part, kind = 's:' .. mode, 'limit'
        if prev ~= '-' then
            -- a release of it that follows finds that it has been released, by this
            if tomb ~= '0' and call('HGET', hold_key(key, part), 'op') == prev then
                call('SET', key .. ':gone:' .. prev, 'released', 'PX', tomb)
            end
            forget_permit(key, part)
        end
    end
    if prev ~= '-' and tomb ~= '0' then
        call('SET', key .. ':gone:' .. prev, '', 'PX', tomb, 'NX')
        any_odd = true
    end
    -- the floor, nearly always: it is text already, and Redis is slow to make text of a number
    local value, least, token = tonumber(floor), math.max(counters[bucket], base) + 1, floor
    if value < least then
        value = least
        token = string.format('%.0f', least)
    end
    counters[bucket] = value
    changed[m + 1] = bucket
    changed[m + 2] = token
    m = m + 2
    if part ~= '-' then
        hold, any_odd = hold_key(key, part), true
    end
    if replaced[hold] then
        call('HDEL', hold, 'end', 'taken')
    end
    call('HSET', hold, 'kind', kind, 'owner', owner, 'count', '1', 'seq', floor, 'token', token, 'op', op, 'lease', lease)
    if maxhold ~= '0' then
        call('HSET', hold, 'end', string.format('%.0f', now + tonumber(maxhold)))
    end
    call('PEXPIRE', hold, lease)
    if part ~= '-' then
        enter_share(key, part, owner, lease, true)
    end
    return 1, value
end

-- What becomes of the ticket; how many stand in the line then.
local function after(key, a, code)
    local prev, ticket = ARGV[a + 2], ARGV[a + 8]
    if ticket == '-' and prev == '-' then
        return 0
    end
    local line, length = key .. ':line', call('LLEN', key .. ':line')
    if ticket == '-' then
        return length
    end
    local numbered = ticket:find('/', 1, true)
    if code == 1 and numbered then
        call('ZREM', key .. ':turn', ticket)
    end
    if code == 1 and length > 0 then
        length = length - call('LREM', line, numbered and 1 or 0, ticket)
    elseif code == 0 then
        line_up(key, ticket, ARGV[a + 9])
    end
    return length
end

-- The last item of the group that begins at i, and whether it is there as a whole.
local function group(i)
    local all = ARGV[2 + i * WIDTH]
    if all == '-' then
        return i, true
    end
    local last = i
    while last < #KEYS and ARGV[2 + (last + 1) * WIDTH] == all do
        last = last + 1
    end
    return last, last - i + 1 == tonumber(all:match('/(%d+)$'))
end

local reply, r = {now, tonumber(ARGV[2])}, 2
local i = 1
while i <= #KEYS do
    local last, free = group(i)
    local codes, values = {}, {}
    for j = i, last do
        codes[j], values[j] = judge(KEYS[j], 2 + (j - 1) * WIDTH)
        free = free and (codes[j] or 1) == 1
    end
    for j = i, last do
        local key, a = KEYS[j], 2 + (j - 1) * WIDTH
        local code, value = codes[j] or -5, values[j] or 0
        if not codes[j] and free then
            code, value = take(key, a)
        end
        reply[r + 1], reply[r + 2], reply[r + 3] = code, value, after(key, a, code)
        r = r + 3
    end
    i = last + 1
end
if m > 0 then
    call('HSET', 'holdfast:master', unpack(changed))
end
return reply
