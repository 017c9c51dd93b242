-- acquire_general: part of acquire.lua: returns a function that serves item i, whatever it is: code, value, line.
--@ codes acquire in_use
--@ hold.lua
--@ rare.lua
--@ call_up.lua
--@ line_up.lua
--@ shares.lua
--@ older.lua
--@ acquire_wish.lua
--@ group.lua
--@ acquire_turn.lua
--@ acquire_exclusive.lua
--@ acquire_reader.lua
--@ acquire_permit.lua

-- Writes the hold of item i with its token. Returns how far that is above the floor.
local function put(i, key, hold, lease)
    local by = above or math.max(0, last_of[counter_of[i]] + 1 - hold:match(TOKEN))
    if by > 0 then
        hold = raise(hold, by)
    end
    call('SET', key, hold, 'PX', lease)
    taken = true
    if names then
        count(i, hold)
    end
    return by
end

local function kind_of(w)
    return w.mode == 'x' and exclusive or w.mode == 's' and reader or permit
end

-- Judges an item: code and value of its refusal, or nil when it may be taken.
local function judge(w)
    --@ mirror if plain[w.i].foreign then return ACQUIRE_HELD, math.max(1, math.min(LOOK_MS, plain[w.i].foreign)) end
    local code, value, has_it = kind_of(w).judge(w)
    if not code and not has_it and is_judged(w) and not is_turn(w.key, w.ticket) then
        return ACQUIRE_HELD, 0
    end
    return code, value
end

-- Takes an item that judge() has allowed.
local function take(w)
    local kind = kind_of(w)
    local part = kind.part(w)
    if w.prev ~= '-' then
        kind.end_prev(w)
        if w.tomb ~= '0' then
            bury(w.key, w.prev, '', w.tomb, 'NX')
            rare = true
        end
    end
    local hold = w.hold
    if w.maxhold ~= '0' then
        hold = hold:gsub(' end=0', ' end=' .. string.format('%.0f', now + w.maxhold), 1)
    end
    local value = put(w.i, hold_key(w.key, part), hold, w.lease)
    if part ~= '-' then
        enter_share(w.key, part, w.owner, w.lease, true)
        rare = true
    end
    return ACQUIRE_TAKEN, value
end

local judged = {}
return function(i)
    judged = judged[i] and judged or judge_group(i, wish_of, judge, ACQUIRE_TAKEN, ACQUIRE_ALL_NEEDED)
    local w = judged[i]
    if not w.code then
        w.code, w.value = take(w)
    end
    return w.code, w.value, settle_ticket(w)
end
