-- later: part of the scripts that write counts; behind hold.lua.

-- Returns whether one version of a count is later than another one (hold.lua).
local function is_later(seq, other)
    local token, number = version(seq)
    local other_token, other_number = version(other)
    return token > other_token or token == other_token and number > other_number
end
