-- rare: part of the scripts that look for tombstones and shares, or write them. Most servers have none most of the time:
-- until holdfast:master's `rare` (this server's time in ms) some may be there, and while it is over nobody looks for them.
local SLACK_MS = 1000 -- the time of a command may be a little behind TIME

local function gone_key(key, op)
    return key .. ':gone:' .. op
end

-- To be called whenever one is written that stays for so long.
local rare_until
local function rare_for(ms)
    local till = now + ms + SLACK_MS
    rare_until = rare_until or tonumber(redis.call('HGET', 'holdfast:master', 'rare') or 0)
    if till > rare_until then
        rare_until = till
        redis.call('HDEL', 'holdfast:master', 'ready') -- see call.lua
        redis.call('HSET', 'holdfast:master', 'rare', string.format('%.0f', till))
    end
end

-- Writes a tombstone: op is gone, for so many ms. how: "released", "moved", "".  ...: "NX"
local function bury(key, op, how, ms, ...)
    rare_for(ms)
    redis.call('SET', gone_key(key, op), how, 'PX', ms, ...)
end
