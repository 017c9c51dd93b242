-- acquire: takes each lock, or a share of it, that is free, or that is still held under the operation `prev`, which
-- this ends (a hand-over: owner, operation and token change in one step).
--
-- KEYS   one lock an item
-- ARGV   deadline call broker lowest highest; then an item: hold more; then, for a quorum: counters
--          deadline  this server's time in ms; after it nothing is created ("" or absent: none)
--          call      number of this call, higher than that of every call of this broker before; it is returned in the
--                    reply, so that no answer is taken for that of another call
--          lowest    token asked for in the first item, and `highest` in the last one: they ascend
--          hold      what is to stand there (hold.lua): with a new id of this operation, never used twice by anybody, the
--                    lowest token allowed, called floor below, and a count of 1 in version `floor`
--          more      lease in ms: the lock as a whole, and nothing else; or that and all of these, with commas between
--                    them:
--          prev      operation whose hold may be replaced; "-": none. Of an exclusive hold, or of the very permit
--          tomb      ms for which `prev` is remembered as gone, also where it was not; 0: no late copy of it can be under
--                    way
--          ticket    who is to be called up when the lock comes free: "<broker>", or "<broker>/<n>" for one
--                    request that wants strict order: it gets a free lock only when it is its turn, or when it has the
--                    lock in another way already (nobody before it can get it then); "-": nobody waits
--          place     when it is refused: see line_up.lua; "front" is for one who has been called up
--          judge     run id of the server whose line decides on turns; "-": this one's
--          maxhold   ms after which it is nobody's, however often it is renewed; 0: none. For a broker that takes it over
--          mode      "x" exclusive; "s" shared; "<n>:<i>" permit i (from 0) of n
--          all       "<group>/<k>": it and the others of this group, which stand beside it, are taken all k or none; "-": it
--                    stands alone
--          counters  field of the token counter of each item, with blanks between; absent: `base` for all
-- Reply  in brief (call.lua), `above` behind it unless that is 0: each item 1 above 0; or {time, call, code, value, line, ...};
--        line is how many tickets stand in the line (counted for those with a ticket and for hand-overs, else 0); code and
--        value of each item:
--          1 above   held under op; its token is so much above floor
--          0 pttl    held by somebody else, for so many ms, 1 at least; 0: it is free, and another one's turn
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
-- The count begins at the version `floor`; who is given a higher token writes that as its version when he renews, so that
-- of two holds' counts the later one has the later version.
-- An exclusive hold stands under the key of the lock (see hold.lua), a share under a key of its own (shares.lua). A token
-- counter never goes back, and has no time to live.
--@ call.lua
--@ vote.lua
--@ ahead.lua
if ARGV[5] - MOST_ASKED > 0 then
    return redis.error_reply(AHEAD)
end
if master[1] ~= READY and not may_be_rare then -- ready again (call.lua)
    call('HSET', 'holdfast:master', 'ready', READY)
end
local HEAD, WIDTH, LEASE_DIGITS, TOKEN = 5, 2, 13, ' token=(%d+) '
local n = #KEYS
local LOWEST, HIGHEST, names = ARGV[4], ARGV[5], ARGV[HEAD + WIDTH * n + 1]

-- So much above what is asked for are all tokens at least: other brokers may have been given higher ones. For a quorum each
-- item has a counter of its own instead: its field and its value, as they were.
local base, above = master[3] or '0', 0
local counter_of, were
local simple, margin = true, LOWEST - base
if not names and margin <= 0 then
    above = 1 - margin
elseif names then
    simple, counter_of = margin > 0, {}
    for name in names:gmatch('%S+') do
        counter_of[#counter_of + 1] = name
    end
    were = call('HMGET', 'holdfast:master', unpack(counter_of))
    for j = 1, n do
        simple = simple and LOWEST - (were[j] or 0) > 0
    end
end

-- The hold with a token that is so much higher, and that token.
local function raise(hold, by)
    local from, to, token = hold:find(TOKEN)
    token = string.format('%.0f', token + by)
    return hold:sub(1, from) .. 'token=' .. token .. hold:sub(to), token
end

-- The usual: exclusive, and nobody has it. Written without more functions, and without a look at the tokens one by one: to
-- make those takes longer than to serve a lock.
local pcall, i, refused = redis.pcall, 1, nil
if simple and not may_be_rare then
    while i <= n do
        local a = HEAD + WIDTH * i
        local hold, lease = ARGV[a - 1], ARGV[a]
        if #lease > LEASE_DIGITS then -- there is more
            break
        elseif above > 0 then
            hold = raise(hold, above)
        end
        if pcall('SET', KEYS[i], hold, 'NX', 'GET', 'PX', lease) then
            refused = i
            break
        end
        i = i + 1
    end
    if i > n and above > 0 then
        call('HSET', 'holdfast:master', LAST, ARGV[2], 'base', string.format('%.0f', HIGHEST + above))
        return BRIEF .. string.format(' %.0f', above)
    elseif i > n and not names then
        call('HSET', 'holdfast:master', LAST, ARGV[2], 'base', HIGHEST)
        return BRIEF
    elseif i > n then
        local written = {LAST, ARGV[2]}
        for j = 1, n do
            written[2 * j + 1], written[2 * j + 2] = counter_of[j], ARGV[HEAD + WIDTH * j - 1]:match(TOKEN)
        end
        call('HSET', 'holdfast:master', unpack(written))
        return BRIEF
    end
end

-- Some of them are not usual.

--@ hold.lua
--@ rare.lua
local reply, rare = {now, CALL}, false
local counters, changed = {base = base}, {}
for j = 1, names and n or 0 do
    counters[counter_of[j]] = were[j] or '0'
end

local function counter(j)
    return names and counter_of[j] or 'base'
end

local function set_counter(j, token)
    counters[counter(j)], changed[counter(j)] = token, token
end

-- Is one of these operations gone, or has somebody a share of one of these locks? Nearly always not: then they need not
-- be asked about one by one.
local function any_rare()
    local keys = {}
    for j = 1, n do
        keys[2 * j - 1] = gone_key(KEYS[j], ARGV[HEAD + WIDTH * j - 1]:match(OP))
        keys[2 * j] = KEYS[j] .. ':shares'
    end
    return call('EXISTS', unpack(keys)) > 0
end

-- Puts the hold of item j there with the next token; how much that is above its floor, or nil: somebody has it. free:
-- known to be so, whatever stands there.
local function put(j, key, hold, lease, free)
    local last = math.max(tonumber(counters[counter(j)]), tonumber(counters.base))
    local token = hold:match(TOKEN)
    local higher = math.max(above, last + 1 - token)
    if higher > 0 then
        hold, token = raise(hold, higher)
    end
    if free then
        call('SET', key, hold, 'PX', lease)
    elseif pcall('SET', key, hold, 'NX', 'GET', 'PX', lease) then
        return nil
    end
    set_counter(j, token)
    return higher
end

-- Hands item j over from the operation that has it, when that is all: how much the token is above its floor, and how many
-- stand in the line; nil: it is something else. What follows does the same; but this is what waiters wait for.
local function hand_over(j)
    local key, a = KEYS[j], HEAD + WIDTH * j
    local lease, prev, ticket = ARGV[a]:match('^(%d+),([^,]+),0,([^,/]*),[^,]*,[^,]*,0,x,%-$')
    local text = prev and not rare and look(key)
    if not text or text:match(OP) ~= prev then
        return nil
    end
    local higher, length = put(j, key, ARGV[a - 1], lease, true), call('LLEN', key .. ':line')
    if length > 0 and ticket ~= '-' then
        length = length - call('LREM', key .. ':line', 0, ticket)
    end
    return higher, length
end

-- What serves all the rest: made when it is needed, because making so many functions costs more than a lock. Returns one
-- that serves the items from i on that belong together: it puts what becomes of them into the reply, and returns the
-- last one.
local function special(reply)
    --@ call_up.lua
    --@ line_up.lua
    --@ shares.lua
    --@ older.lua

    -- An item, its arguments by name.
    local function wish(i)
        local a, w = HEAD + WIDTH * i, {key = KEYS[i], i = i}
        w.hold, w.lease = ARGV[a - 1], ARGV[a]
        w.floor = w.hold:match(TOKEN)
        w.op, w.owner = w.hold:match('^op=(%S+) .- owner=(.*)$')
        w.prev, w.tomb, w.ticket, w.judge, w.maxhold, w.mode, w.all = '-', '0', '-', '-', '0', 'x', '-'
        if #w.lease > LEASE_DIGITS then
            w.lease, w.prev, w.tomb, w.ticket, w.place, w.judge, w.maxhold, w.mode, w.all =
                w.lease:match('^(%d+),([^,]*),([^,]*),([^,]*),([^,]*),([^,]*),([^,]*),([^,]*),([^,]*)$')
        end
        return w
    end

    -- A numbered ticket whose turn it is may have it. When it is nobody's, the next one is called up.
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

    -- How long what is in the way lasts: in its last millisecond, too, it is in the way.
    local function left(ms)
        return math.max(1, ms)
    end

    -- What is said to op while `held` stands there; nil: it is a try of the same broker's owner that is given up.
    local function held_against(w, hold, held)
        local relation = held.owner == w.owner and age(w.op, held.op)
        if relation == 'older' then
            return -1, 0
        elseif relation ~= 'newer' or held.taken == '1' then
            return held.owner == w.owner and 2 or 0, left(call('PTTL', hold))
        end
        bury(w.key, held.op, 'released', math.max(1, call('PTTL', hold)))
    end

    -- What is said to one who wants it alone while there are shares; nil: he may have it; and whether he is its
    -- only reader.
    local function in_the_way(key, owner, ticket)
        local live = shares(key)
        if live == 0 then
            return
        end
        local limit = limit_of(key)
        if limit then
            return -3, limit
        end
        local own = call('ZSCORE', key .. ':shares', 'r:' .. owner)
        if own and live == 1 then
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
        return 0, left(call('ZREVRANGE', key .. ':shares', 0, 0, 'WITHSCORES')[2] - now)
    end

    -- It has come before: the token is the same.
    local function again(w, held)
        return 1, held.token - w.floor
    end

    -- What is said to op when it has come before, or has ended; nil: it is new. held: what its owner has.
    local function seen(w, held)
        if held and held.op == w.op then
            return again(w, held)
        elseif call('EXISTS', gone_key(w.key, w.op)) == 1 then
            return -1, 0
        end
    end

    -- The kinds: each returns what is to be answered, code and value; nil: it may be taken. And whether its owner
    -- has the lock in another way already.

    local function exclusive(w)
        local held = read(w.key)
        if held and not held.op then
            return -2, 0
        elseif held and held.op == w.op then
            return again(w, held)
        elseif held and held.op ~= w.prev then
            local code, value = held_against(w, w.key, held)
            if code then
                return code, value
            end
        end
        if not rare then
            return
        elseif call('EXISTS', gone_key(w.key, w.op)) == 1 then
            return -1, 0
        end
        return in_the_way(w.key, w.owner, w.ticket)
    end

    local function shared(w)
        local key, hold, alone = w.key, hold_key(w.key, 'r:' .. w.owner), read(w.key)
        if alone and not alone.op then
            return -2, 0
        end
        local live, limit = shares(key), limit_of(key)
        local mine = read(hold)
        local code, value = seen(w, mine)
        if mine and not code then
            code, value = held_against(w, hold, mine)
        end
        if code then
            return code, value
        end
        if alone and alone.op ~= w.prev and alone.owner ~= w.owner then
            return 0, left(call('PTTL', key))
        elseif limit then
            return -3, limit
        elseif live > 0 and w.place ~= 'front' and call('LLEN', key .. ':line') > 0 then
            return 0, 0 -- whoever waits there may want it alone: readers who come later do not overtake him
        end
        return nil, nil, alone and alone.owner == w.owner
    end

    -- The permit that this owner has already; nil: it is given up, or is the one that he asks for.
    local function own_permit(w, slot)
        local its = hold_key(w.key, 's:' .. slot)
        local held = read(its)
        if not held then
            return 2, left(call('PTTL', its))
        end
        local code, value = held_against(w, its, held)
        if code then
            return code, value
        elseif slot ~= w.mode then
            forget_permit(w.key, 's:' .. slot) -- a try that came late
            call('DEL', its)
            call('ZREM', w.key .. ':shares', 's:' .. slot)
        end
    end

    local function permit(w)
        local key, hold, alone = w.key, hold_key(w.key, 's:' .. w.mode), look(w.key)
        if alone and not alone:match(OP) then
            return -2, 0
        end
        local live, limit = shares(key), limit_of(key)
        local held = read(hold)
        local said, its = seen(w, held)
        if said then
            return said, its
        elseif alone then
            return -3, 0
        end
        local most, i = w.mode:match('^(%d+):(%d+)$')
        most, i = tonumber(most), tonumber(i)
        if live > 0 and limit ~= most then
            return -3, limit or -1
        end
        local replaces = held and held.op == w.prev
        local mine = call('GET', permit_key(key, w.owner))
        if mine and not (mine == w.mode and replaces) then
            local code, value = own_permit(w, mine)
            if code or mine == w.mode then
                return code, value
            end
            live = live - 1
        end
        if not held or replaces then
            return
        elseif live >= most then
            return 0, left(call('ZRANGE', key .. ':shares', 0, 0, 'WITHSCORES')[2] - now)
        end
        repeat
            i = (i + 1) % most
        until not call('ZSCORE', key .. ':shares', 's:' .. most .. ':' .. i)
        return 3, i
    end

    local function judge(w)
        local kind = w.mode == 'x' and exclusive or w.mode == 's' and shared or permit
        local code, value, has = kind(w)
        local judged = w.ticket:find('/', 1, true) and (w.judge == '-' or w.judge == RUN_ID)
        if not code and not has and judged and not is_turn(w.key, w.ticket) then
            return 0, 0
        end
        return code, value
    end

    -- Takes what judge() has allowed.
    local function take(w)
        local key, prev, tomb, part = w.key, w.prev, w.tomb, '-'
        if w.mode == 's' then
            part = 'r:' .. w.owner
            local alone = prev ~= '-' and look(key)
            if alone and alone:match(OP) == prev then
                call('DEL', key)
            end
        elseif w.mode ~= 'x' then
            part = 's:' .. w.mode
            if prev ~= '-' then
                -- a repeat of the release of prev, which comes behind, is answered as what it is
                local held = tomb ~= '0' and look(hold_key(key, part))
                if held and held:match(OP) == prev then
                    bury(key, prev, 'released', tomb)
                end
                forget_permit(key, part)
            end
        end
        if prev ~= '-' and tomb ~= '0' then
            bury(key, prev, '', tomb, 'NX')
            rare = true
        end
        local hold = w.hold
        if w.maxhold ~= '0' then
            hold = hold:gsub(' end=0', ' end=' .. string.format('%.0f', now + w.maxhold), 1)
        end
        local above = put(w.i, hold_key(key, part), hold, w.lease, true)
        if part ~= '-' then
            rare = true
            enter_share(key, part, w.owner, w.lease, true)
        end
        return 1, above
    end

    -- What becomes of the ticket; how many stand in the line then.
    local function after(w, code)
        if w.ticket == '-' and w.prev == '-' then
            return 0
        end
        local line, length = w.key .. ':line', call('LLEN', w.key .. ':line')
        if w.ticket == '-' then
            return length
        end
        local numbered = w.ticket:find('/', 1, true)
        if code == 1 and numbered then
            call('ZREM', w.key .. ':turn', w.ticket)
        end
        if code == 1 and length > 0 then
            length = length - call('LREM', line, numbered and 1 or 0, w.ticket)
        elseif code == 0 then
            line_up(w.key, w.ticket, w.place)
        end
        return length
    end

    -- Those from i on that are taken all or none, and whether they have all come.
    local function group(i)
        local all = wish(i)
        local together = {all}
        if all.all == '-' then
            return together, true
        end
        while i < n do
            i = i + 1
            local w = wish(i)
            if w.all ~= all.all then
                break
            end
            together[#together + 1] = w
        end
        return together, #together == tonumber(all.all:match('/(%d+)$'))
    end

    return function(i)
        local together, free = group(i)
        local codes, values = {}, {}
        for j, w in ipairs(together) do
            codes[j], values[j] = judge(w)
            free = free and (codes[j] or 1) == 1
        end
        for j, w in ipairs(together) do
            local code, value, r = codes[j] or -5, values[j] or 0, 3 * (i + j - 1)
            if not codes[j] and free then
                code, value = take(w)
            end
            reply[r], reply[r + 1], reply[r + 2] = code, value, after(w, code)
        end
        return i + #together - 1
    end
end

for j = 1, i - 1 do -- have been served
    local _, token = raise(ARGV[HEAD + WIDTH * j - 1], above)
    reply[3 * j], reply[3 * j + 1], reply[3 * j + 2] = 1, above, 0
    set_counter(j, token)
end
rare = may_be_rare and any_rare()
local serve
while i <= n do
    local a, higher, line = HEAD + WIDTH * i, nil, 0
    if #ARGV[a] > LEASE_DIGITS then
        higher, line = hand_over(i)
    elseif not rare and i ~= refused then
        higher = put(i, KEYS[i], ARGV[a - 1], ARGV[a])
    end
    if higher then
        reply[3 * i], reply[3 * i + 1], reply[3 * i + 2] = 1, higher, line
    else
        serve = serve or special(reply)
        i = serve(i)
    end
    i = i + 1
end

local written = {LAST, ARGV[2]}
for name, token in pairs(changed) do
    written[#written + 1] = name
    written[#written + 1] = token
end
call('HSET', 'holdfast:master', unpack(written))
return reply
