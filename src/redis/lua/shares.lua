-- shares: part of the scripts that know of readers and permits. Who has a share of a lock stands in the sorted set
-- <key>:shares by the end of his time: "r:<owner>" a reader, "s:<n>:<i>" permit i of n. His hold is under <key>:<share>, as
-- an exclusive one is under <key>; <key>:permit:<owner> is the "<n>:<i>" of an owner's permit.
-- Needs rare.lua.
-- Invariant: the hold of a share never ends before its place in the set does.

-- Owners are any bytes: without "}" their keys cannot be those of another lock, whatever its name.
local function no_brace(text)
    return text:gsub('[%%}]', {['%'] = '%25', ['}'] = '%7D'})
end

local function hold_key(key, part)
    return part == '-' and key or key .. ':' .. no_brace(part)
end

local function permit_key(key, owner)
    return key .. ':permit:' .. no_brace(owner)
end

-- When it is a permit, held under op (nil: any), its owner has it no longer.
local function forget_permit(key, part, op)
    local h = part:byte() == 115 and read(hold_key(key, part)) -- s
    if h and h.op == (op or h.op) and redis.call('GET', permit_key(key, h.owner)) == part:sub(3) then
        redis.call('DEL', permit_key(key, h.owner))
    end
end

-- How many there are. Those whose time is over are forgotten with what they hold: a renewal that comes a moment later must
-- not find it, because somebody may have taken the lock.
local function shares(key)
    local over = redis.call('ZRANGEBYSCORE', key .. ':shares', '-inf', '(' .. string.format('%.0f', now))
    for _, part in ipairs(over) do
        forget_permit(key, part)
        redis.call('DEL', hold_key(key, part))
        redis.call('ZREM', key .. ':shares', part)
    end
    return redis.call('ZCARD', key .. ':shares')
end

-- n when it is in use as n permits, else nil.
local function limit_of(key)
    local first = redis.call('ZRANGE', key .. ':shares', 0, 0)[1]
    return first and tonumber(first:match('^s:(%d+):'))
end

local function at_least(key, ms)
    if redis.call('PTTL', key) < ms then
        redis.call('PEXPIRE', key, ms)
    end
end

-- Writes a share, or that it lasts longer; or, when it is `anew`, what its time is now.
local function enter_share(key, part, owner, lease, anew)
    lease = tonumber(lease)
    local till = now + lease
    local old = not anew and redis.call('ZSCORE', key .. ':shares', part)
    if not old or tonumber(old) < till then
        redis.call('ZADD', key .. ':shares', string.format('%.0f', till), part)
        if part:byte() == 115 then -- s
            redis.call('SET', permit_key(key, owner), part:sub(3), 'PX', lease)
        end
    end
    at_least(key .. ':shares', lease)
    rare_for(lease)
end
