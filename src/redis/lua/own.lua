-- own: part of the scripts that ask what one owner has of a lock, however many others have some; behind shares.lua.

-- Returns what this owner has of the lock as `kind`: its part and its hold; nil: nothing. kind: "x" exclusive, "s" as a
-- reader, "n" a permit.
local function own(key, owner, kind)
    local permit = kind == 'n' and redis.call('GET', permit_key(key, owner))
    local part = kind == 'x' and '-' or kind == 's' and 'r:' .. owner or permit and 's:' .. permit
    local held = part and read(hold_key(key, part))
    if held and held.owner == owner then
        return part, held
    end
end
