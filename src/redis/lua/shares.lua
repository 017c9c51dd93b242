-- shares: part of the scripts that know of readers and permits; behind hold.lua and rare.lua. The sorted set <key>:shares
-- has the shares of a lock by the end of their time: "r:<owner>" a reader, "s:<n>:<i>" permit i of n. The hold of a share is
-- under <key>:<share>, as an exclusive one is under <key>. <key>:permit:<owner> is the "<n>:<i>" of an owner's permit.
-- A part of a lock is a share, or "-": the lock as a whole.
--
-- Invariant: the hold of a share never ends before its place in the set does.

-- Owners are any bytes. Without "}" their keys cannot be those of another lock, whatever its name.
local function no_brace(text)
    return text:gsub('[%%}]', {['%'] = '%25', ['}'] = '%7D'})
end

local function is_reader(part)
    return part:sub(1, 2) == 'r:'
end

local function is_permit(part)
    return part:sub(1, 2) == 's:'
end

local function hold_key(key, part)
    return part == '-' and key or key .. ':' .. no_brace(part)
end

local function permit_key(key, owner)
    return key .. ':permit:' .. no_brace(owner)
end

-- Takes a permit away from its owner's <key>:permit:<owner>, if it is held under op (nil: any). Other parts have none.
local function forget_permit(key, part, op)
    local h = is_permit(part) and read(hold_key(key, part))
    if h and h.op == (op or h.op) and redis.call('GET', permit_key(key, h.owner)) == part:sub(3) then
        redis.call('DEL', permit_key(key, h.owner))
    end
end

-- Returns how many shares there are. Deletes those whose time is over with their holds first: a renewal that comes a moment
-- later must not find them, because somebody may have taken the lock.
local function shares(key)
    local over = redis.call('ZRANGEBYSCORE', key .. ':shares', '-inf', '(' .. string.format('%.0f', now))
    for _, part in ipairs(over) do
        forget_permit(key, part)
        redis.call('DEL', hold_key(key, part))
        redis.call('ZREM', key .. ':shares', part)
    end
    return redis.call('ZCARD', key .. ':shares')
end

-- Returns n when the lock is in use as n permits, else nil.
local function limit_of(key)
    local first = redis.call('ZRANGE', key .. ':shares', 0, 0)[1]
    return first and tonumber(first:match('^s:(%d+):'))
end

-- Writes a share that lasts for `lease` ms, or prolongs it. Shortens it only with `anew`.
local function enter_share(key, part, owner, lease, anew)
    lease = tonumber(lease)
    local till, set = now + lease, key .. ':shares'
    local old = not anew and redis.call('ZSCORE', set, part)
    if not old or tonumber(old) < till then
        redis.call('ZADD', set, string.format('%.0f', till), part)
        if is_permit(part) then
            redis.call('SET', permit_key(key, owner), part:sub(3), 'PX', lease)
        end
    end
    if redis.call('PTTL', set) < lease then
        redis.call('PEXPIRE', set, lease)
    end
    rare_for(lease)
end
