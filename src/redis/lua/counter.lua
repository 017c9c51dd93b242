-- counter: part of the scripts that write tokens. Reads and raises the counter that the tokens of a lock come from, a field
-- of holdfast:master; which one a lock has, redis/token.h says. A counter never goes back and has no time to live.
local function last_token(counter)
    return tonumber(redis.call('HGET', 'holdfast:master', counter)) or 0
end

local function count_to(counter, token)
    redis.call('HSET', 'holdfast:master', counter, string.format('%.0f', token))
end
