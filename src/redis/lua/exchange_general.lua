-- exchange_general: part of exchange.lua: returns a function that serves item i, whatever it is: code, value, left, text.
--@ hold.lua
--@ rare.lua
--@ call_up.lua
--@ shares.lua
--@ group.lua
--@ codes exchange
--@ mirror mirror_state.lua
local WISH = '^expect=(%S+) lease=(%d+) token=(%a+) tomb=(%d+) by=(%S+) as=(%a+) seq=(%S+) time=(%S) group=(%S+)$'

-- Returns an item by the names of its fields.
local function item_of(i)
    local last = HEAD + WIDTH * i
    local x, wish = {i = i, key = KEYS[i], hold = ARGV[last - 1]}, ARGV[last]
    x.expect, x.lease, x.token, x.tomb, x.by, x.as, x.seq, x.time, x.group = wish:match(WISH)
    if not x.as then
        x.expect, x.lease, x.time = wish:match('op=(%S+) $') or 'free', wish:match('^lease=(%d+) ') or wish, wish:sub(1, 1)
        x.token = x.expect == 'free' and 'new' or 'kept'
        x.tomb, x.by, x.as, x.seq, x.group = '0', '-', 'vote', '-', '-'
    else
        if x.as ~= 'vote' and x.hold ~= '-' then
            x.lease = x.lease - now
            x.hold = x.lease > 0 and x.hold or '-'
        end
    end
    x.op = x.hold:match(OP)
    return x
end

-- Returns the operation that took the hold of a version, and the number of the version.
local function identity(seq, op)
    return seq:match('/(.*)$') or op, select(2, version(seq))
end

-- Does what a majority has confirmed belong over what stands here?
local function is_missed(x, held)
    if held.op == x.expect then
        return true
    end
    local birth, number = identity(held.seq, held.op)
    local its, most = identity(x.seq)
    return birth == its and number <= most
end

-- Judges an item: nil when it may be done, else the code. Leaves what stands there in x.
local function judge(x)
    local held = read(x.key)
    x.held = held
    --@ mirror if plain[x.i].foreign and x.hold ~= '-' and x.as ~= 'back' then return EXCHANGE_PLAIN end
    if held and not held.op then
        return EXCHANGE_FOREIGN
    elseif not held and rare and shares(x.key) > 0 then
        return EXCHANGE_SHARED
    elseif held and held.op == x.op then
        x.is_repeated = true
        return
    end
    local gone = x.op and call('GET', gone_key(x.key, x.op))
    if x.as == 'back' then
        x.gone, x.is_buried = gone, gone and gone ~= x.by
        local is_mine = held and held.op == x.expect or not held and x.expect == 'free' and gone == x.by
        return not is_mine and EXCHANGE_OTHER or nil
    elseif gone then
        return EXCHANGE_GONE
    elseif x.as == 'heal' then
        return not (held and is_missed(x, held)) and EXCHANGE_OTHER or nil
    end
    return (held and held.op or 'free') ~= x.expect and EXCHANGE_OTHER or nil
end

-- Writes the hold of an item. Returns how far its token is above the one that it had.
local function put(x)
    local hold, by, counter = x.hold, 0, counter_of and counter_of[x.i]
    local token = hold:match(TOKEN)
    if x.token == 'new' then
        by, taken = above or math.max(0, last_of[counter] + 1 - token), true
    elseif x.held and x.as ~= 'back' then
        by = math.max(0, x.held.token - token)
    end
    if by > 0 then
        hold = hold:gsub(TOKEN, ' token=' .. string.format('%.0f', token + by) .. ' ', 1)
    end
    if counter and token + by - last_of[counter] > 0 then
        count(x.i, hold)
    end
    if x.lease == '0' then
        call('SET', x.key, hold, 'KEEPTTL')
    else
        call('SET', x.key, hold, 'PX', x.lease)
    end
    return x.token == 'new' and by or 0
end

-- Remembers that what was expected is gone.
local function remember(x, how, ...)
    if x.tomb ~= '0' and x.as ~= 'back' then
        bury(x.key, x.expect, how, x.tomb, ...)
        rare = true
    end
end

-- Remembers that an operation of another broker is gone, and tells that broker, which asks before it believes it.
local function tell(x)
    remember(x, x.by)
    local broker = x.tomb ~= '0' and x.as ~= 'back' and x.expect:match('^(.*)%.')
    if broker then
        call('PUBLISH', 'holdfast:wake:' .. broker, x.expect .. ' ' .. x.key)
    end
end

-- Ends what stands there. Returns how many may be called up.
local function finish(x)
    call('DEL', x.key)
    local line = x.as == 'vote' and call('LLEN', x.key .. ':line') or 0
    if line > 0 and not names then
        call_up(x.key)
    end
    return names and line or 0
end

-- Does an item that judge() has allowed. Returns value and left.
local function perform(x)
    local value, left = 0, 0
    if x.hold == '' then
        left = x.time == 't' and x.held and math.max(0, call('PTTL', x.key)) or 0
    elseif x.is_repeated then
        value = x.token == 'new' and x.held.token - x.hold:match(TOKEN) or 0
    elseif x.hold == '-' or x.is_buried then
        left = finish(x)
        tell(x)
    else
        value = put(x)
        tell(x)
        if x.gone then
            call('DEL', gone_key(x.key, x.op))
        end
    end
    return value, left
end

-- Returns for how long what stands in the way of an item does so, and what it is.
local function obstacle(x)
    local left, text = 0, ''
    --@ mirror if x.code == EXCHANGE_PLAIN then return plain[x.i].foreign, plain_state(plain[x.i]) end
    if x.code == EXCHANGE_SHARED then
        left = math.max(1, call('ZREVRANGE', x.key .. ':shares', 0, 0, 'WITHSCORES')[2] - now)
    elseif x.code ~= EXCHANGE_GONE and x.held then
        left = math.max(0, call('PTTL', x.key))
        text = x.code == EXCHANGE_OTHER and look(x.key) or ''
    elseif x.code == EXCHANGE_OTHER then
        remember(x, '', 'NX')
    end
    return left, text
end

local judged = {}
return function(i)
    judged = judged[i] and judged or judge_group(i, item_of, judge, EXCHANGE_DONE, EXCHANGE_ALL_NEEDED)
    local x = judged[i]
    if x.code then
        return x.code, 0, obstacle(x)
    end
    local value, left = perform(x)
    return EXCHANGE_DONE, value, left, ''
end
