-- mirror_state: part of exchange_general.lua, behind mirror.lua: what somebody else's plain key is, as the state of a drop-in
-- hold. What is too long for one, or neither string nor hash, looks like a string of no bytes.
local STATE_MAX, FIELDS_MAX = 4096, 128

local function plain_state(p)
    local kind, head = plain_call(p, 'TYPE', p.name).ok, p.lasts and ' - ' or ' t '
    local text = 'drop-in s' .. head .. (p.text or '')
    if kind == 'hash' and plain_call(p, 'HLEN', p.name) <= FIELDS_MAX then
        local list = plain_call(p, 'HGETALL', p.name)
        for i = 1, #list do
            list[i] = #list[i] .. ':' .. list[i]
        end
        text = 'drop-in h' .. head .. table.concat(list)
    end
    return #text <= STATE_MAX and text or 'drop-in s' .. head
end
