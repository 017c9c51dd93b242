-- acquire_wish: part of acquire.lua: an item by the names of its fields, and what is said to items of any kind.
local WISH = '^lease=(%d+) prev=(%S+) tomb=(%d+) ticket=(%S+) place=(%S+) judge=(%S+) maxhold=(%d+) mode=(%S+) group=(%S+)$'

local function wish_of(i)
    local w = {i = i, key = KEYS[i], hold = ARGV[HEAD + WIDTH * i - 1], lease = ARGV[HEAD + WIDTH * i]}
    w.floor = w.hold:match(TOKEN)
    w.op, w.owner = w.hold:match('^op=(%S+) .- owner=(.*)$')
    if #w.lease <= LEASE_DIGITS then
        w.prev, w.tomb, w.ticket, w.judge, w.maxhold, w.mode, w.group = '-', '0', '-', '-', '0', 'x', '-'
    else
        w.lease, w.prev, w.tomb, w.ticket, w.place, w.judge, w.maxhold, w.mode, w.group = w.lease:match(WISH)
    end
    return w
end

-- Returns for how long something stands in the way: also in its last millisecond it does.
local function left(ms)
    return math.max(1, ms)
end

-- Returns code and value for an operation that has come before or has ended, nil for a new one. held: what its owner has.
local function repeated(w, held)
    if held and held.op == w.op then
        return ACQUIRE_TAKEN, held.token - w.floor
    elseif call('EXISTS', gone_key(w.key, w.op)) == 1 then
        return ACQUIRE_GONE, 0
    end
end

-- Returns code and value for an item while `held` stands under the key `hold`. Returns nil when that is a try of the same
-- owner and broker that was given up: it gets a tombstone.
local function refusal(w, hold, held)
    local relation = held.owner == w.owner and age(w.op, held.op)
    if relation == 'older' then
        return ACQUIRE_GONE, 0
    elseif relation ~= 'newer' or held.taken == '1' then
        return held.owner == w.owner and ACQUIRE_SAME_OWNER or ACQUIRE_HELD, left(call('PTTL', hold))
    end
    bury(w.key, held.op, 'released', left(call('PTTL', hold)))
end

-- A kind has three functions. judge(w): code and value of what is to be answered, or nil when the item may be taken; and then
-- whether its owner has the lock in another way already. part(w): what it is called in shares.lua. end_prev(w): ends the hold
-- under `prev`, unless the new one is written over it.
