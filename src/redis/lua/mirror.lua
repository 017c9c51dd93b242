-- mirror: part of the scripts that write, renew or end holds, for brokers that mirror (R23). The lock of a name is also the
-- plain key of that name, which programs know that talk to this server themselves: a string or a hash that stands as long as
-- somebody has the lock through holdfast. Looks at the plain keys of all items before anything is changed, and leaves what it
-- finds in `plain`; mirror_end.lua writes them when all has been changed. The keys of a name "db<n>:..." are in database n.
--
-- A plain key is ours while it says what stands here: the owner of a hold, what a drop-in hold is to Redis, or SHARED of readers
-- and permits. Any other is somebody else's: it is never written, and who wants the lock finds it held, for LOOK_MS at most,
-- because nobody tells us when it is deleted.
local MIRROR_DB, SHARED, LOOK_MS = '@MIRROR_DB@', 'holdfast: shared', 100
local plain, has_foreign = {}, false

-- Calls a command in the database of a plain key.
local function plain_call(p, ...)
    if not p.db then
        return call(...)
    end
    call('SELECT', p.db)
    local reply = call(...)
    call('SELECT', MIRROR_DB)
    return reply
end

-- Returns the plain key of a lock; nil: its name is that of a key of holdfast, and stays without one.
local function plain_of(key)
    local p = {key = key, name = key:sub(#'holdfast:{' + 1, -2)}
    local db, rest = p.name:match('^db([1-9]%d*):(.*)$')
    if db and redis.pcall('SELECT', db).ok then
        call('SELECT', MIRROR_DB)
        p.db, p.name = db, rest
    end
    return p.name:sub(1, 9) ~= 'holdfast:' and p or nil
end

-- Returns fields and values of a hash as a state of drop-in has them: "<length>:<bytes>", one after the other.
local function pairs_of(text)
    local list, at = {}, 1
    while at <= #text do
        local length, first = text:match('^(%d+):()', at)
        if not length then
            break
        end
        list[#list + 1] = text:sub(first, first + length - 1)
        at = first + length
    end
    return list
end

-- Returns what a hold is as a plain key: a string, or nil and a hash as a list.
local function shown(hold)
    local owner = hold and hold:match(' owner=(.*)$')
    local kind, content = (owner or ''):match('^drop%-in ([sh]) [t%-] (.*)$')
    if kind == 'h' then
        return nil, pairs_of(content)
    end
    return content or owner
end

-- Returns until when somebody has a share of the lock, by this server's time in ms; 0: nobody has.
local function shared_till(key)
    local till = tonumber(call('ZREVRANGE', key .. ':shares', 0, 0, 'WITHSCORES')[2] or 0)
    return till >= now and till or 0
end

local function is_hash(p, list)
    if plain_call(p, 'TYPE', p.name).ok ~= 'hash' or 2 * plain_call(p, 'HLEN', p.name) ~= #list then
        return false
    end
    for i = 1, #list, 2 do
        if plain_call(p, 'HGET', p.name, list[i]) ~= list[i + 1] then
            return false
        end
    end
    return true
end

-- Does the plain key that is there say what stands here?
local function is_mine(p)
    local value, list = shown(p.hold)
    if p.text then
        return p.text == value or p.text == SHARED and (p.hold or shared_till(p.key) > 0)
    end
    return list and is_hash(p, list)
end

for i = 1, #KEYS do
    local p = plain_of(KEYS[i])
    if p then
        p.hold, p.text = unpack(call('MGET', p.key, p.db and p.key or p.name))
        p.text = p.db and plain_call(p, 'MGET', p.name)[1] or not p.db and p.text
        p.is_there = p.text or plain_call(p, 'EXISTS', p.name) == 1
        if p.is_there and not is_mine(p) then
            p.foreign, has_foreign = plain_call(p, 'PTTL', p.name), true
            p.lasts = p.foreign < 0 -- until somebody deletes it
            p.foreign = p.lasts and 86400000 or math.max(1, p.foreign)
        end
    end
    plain[i] = p or {}
end
