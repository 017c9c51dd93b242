-- own: part of the scripts that ask what one owner has of a lock, however many others have some; behind shares.lua.

-- Tells whether a share that stands under its key is over: it has lost its place in the set, or somebody else has the lock alone.
-- A clock that has gone back brings its key back to life.
local function is_over(key, owner, part)
    local alone = read(key)
    return alone and alone.owner ~= owner or not redis.call('ZSCORE', key .. ':shares', part)
end

-- Returns what this owner has of the lock as `kind`: its part and its hold; nil: nothing. kind: "x" exclusive, "s" as a
-- reader, "n" a permit.
local function own(key, owner, kind)
    local permit = kind == 'n' and redis.call('GET', permit_key(key, owner))
    local part = kind == 'x' and '-' or kind == 's' and 'r:' .. owner or permit and 's:' .. permit
    local held = part and read(hold_key(key, part))
    if held and held.owner == owner and (kind == 'x' or not is_over(key, owner, part)) then
        return part, held
    end
end
