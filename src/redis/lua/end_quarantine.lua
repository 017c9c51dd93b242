-- end_quarantine: part of the scripts that end the quarantine of this server.

-- Makes it active. Every token that it gives from now on is above `base`; `known`: the base that it has.
local function end_quarantine(base, known)
    redis.call('HSET', 'holdfast:master', 'state', 'active')
    redis.call('DEL', 'holdfast:planted')
    if base > (tonumber(known) or 0) then
        redis.call('HSET', 'holdfast:master', 'base', string.format('%.0f', base))
    end
end
