-- rare: part of the scripts that look for tombstones and shares, or write them. Most servers have none most of the time. Some
-- may be there until `rare` in holdfast:master, a time of this server in ms; after it nobody looks for them.
local SLACK_MS = 1000 -- the time of a command may be a little behind TIME

local function gone_key(key, op)
    return key .. ':gone:' .. op
end

-- Notes that something rare stays for so long; every writer of one calls this. Takes `ready` away (call.lua). A server whose
-- clock has gone back may be `ready` though `rare` is not over. HDEL comes last: behind any write Redis no longer refuses
-- what a full server has no room for.
local rare_until
local function rare_for(ms)
    local till, ready = now + ms + SLACK_MS, false
    if not rare_until then
        local mark = redis.call('HMGET', 'holdfast:master', 'rare', 'ready')
        rare_until, ready = tonumber(mark[1] or 0), mark[2]
    end
    if till > rare_until then
        rare_until = till
        redis.call('HSET', 'holdfast:master', 'rare', string.format('%.0f', till))
    end
    if ready then
        redis.call('HDEL', 'holdfast:master', 'ready')
    end
end

-- Writes a tombstone: op is gone, for so many ms. how: "released", "moved", "".  ...: "NX"
local function bury(key, op, how, ms, ...)
    rare_for(ms)
    redis.call('SET', gone_key(key, op), how, 'PX', ms, ...)
end
