-- Scripts over a hash whose fields are owners and whose values count, and over hashes with named fields.

--# enter | H | owner ms | time
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
    redis.call('hincrby', KEYS[1], ARGV[1], 1)
    redis.call('pexpire', KEYS[1], ARGV[2])
    return nil
end
return redis.call('pttl', KEYS[1])

--# enter_in_two_branches | H | owner ms
if redis.call('exists', KEYS[1]) == 0 then
    redis.call('hset', KEYS[1], ARGV[1], 1)
    redis.call('pexpire', KEYS[1], ARGV[2])
    return 1
end
if redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
    local count = redis.call('hincrby', KEYS[1], ARGV[1], 1)
    redis.call('pexpire', KEYS[1], ARGV[2])
    return count
end
return 0

--# enter_once | H | owner ms
if redis.call('hsetnx', KEYS[1], 'holder', ARGV[1]) == 0 then
    return redis.call('hget', KEYS[1], 'holder')
end
redis.call('pexpire', KEYS[1], ARGV[2])
return true

--# enter_with_named_fields | H | owner s
local holder = redis.call('hget', KEYS[1], 'holder')
if holder and holder ~= ARGV[1] then return 0 end
redis.call('hset', KEYS[1], 'holder', ARGV[1])
local depth = redis.call('hincrby', KEYS[1], 'depth', 1)
redis.call('expire', KEYS[1], ARGV[2])
return depth

--# leave_with_named_fields | H | owner
local seen = redis.call('hmget', KEYS[1], 'holder', 'depth')
if seen[1] ~= ARGV[1] then return -1 end
local depth = tonumber(seen[2]) or 0
if depth > 1 then
    return redis.call('hincrby', KEYS[1], 'depth', -1)
end
redis.call('del', KEYS[1])
return 0

--# leave | H | owner ms
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end
local left = redis.call('hincrby', KEYS[1], ARGV[1], -1)
if left > 0 then
    redis.call('pexpire', KEYS[1], ARGV[2])
    return 0
end
redis.call('del', KEYS[1])
return 1

--# leave_and_tell | H | owner ms "ch"
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
    return nil
end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then
    redis.call('pexpire', KEYS[1], ARGV[2])
    return 0
else
    redis.call('del', KEYS[1])
    redis.call('publish', ARGV[3], '0')
    return 1
end

--# leave_by_hdel | H | owner
local count = redis.call('hincrby', KEYS[1], ARGV[1], -1)
if count <= 0 then redis.call('hdel', KEYS[1], ARGV[1]) end
return count

--# leave_without_new_time | H | owner
local count = redis.call('hget', KEYS[1], ARGV[1])
if not count then return 0 end
if tonumber(count) == 1 then return redis.call('del', KEYS[1]) end
return redis.call('hincrby', KEYS[1], ARGV[1], -1)

--# leave_for_all | H |
if redis.call('del', KEYS[1]) == 1 then
    redis.call('publish', 'ch', 'all')
    return 1
end
return 0

--# renew | H | owner ms
if redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
    redis.call('pexpire', KEYS[1], ARGV[2])
    return 1
end
return 0

--# renew_by_count | H | owner s
local count = tonumber(redis.call('hget', KEYS[1], ARGV[1]) or 0)
if count == 0 then return false end
redis.call('expire', KEYS[1], ARGV[2])
return count

--# hand_field_over | H | owner other
local count = redis.call('hget', KEYS[1], ARGV[1])
if not count or ARGV[1] == ARGV[2] then return 0 end
redis.call('hdel', KEYS[1], ARGV[1])
redis.call('hset', KEYS[1], ARGV[2], count)
return tonumber(count)

--# share_by_mode | H | owner ms
local mode = redis.call('hget', KEYS[1], 'mode')
if mode == 'write' then return 0 end
redis.call('hset', KEYS[1], 'mode', 'read')
local count = redis.call('hincrby', KEYS[1], ARGV[1], 1)
if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) - 2500 then redis.call('pexpire', KEYS[1], ARGV[2]) end
return count

--# write_by_mode | H | owner ms
local mode = redis.call('hget', KEYS[1], 'mode')
local me = ARGV[1] .. ':w'
if mode and not (mode == 'write' and redis.call('hexists', KEYS[1], me) == 1) then return 0 end
redis.call('hset', KEYS[1], 'mode', 'write')
redis.call('hincrby', KEYS[1], me, 1)
return redis.call('pexpire', KEYS[1], ARGV[2])

--# unshare_by_mode | H | owner
local field = ARGV[1]
if redis.call('hget', KEYS[1], 'mode') == 'write' then field = field .. ':w' end
if redis.call('hexists', KEYS[1], field) == 0 then return nil end
if redis.call('hincrby', KEYS[1], field, -1) == 0 then redis.call('hdel', KEYS[1], field) end
if redis.call('hlen', KEYS[1]) == 1 then redis.call('del', KEYS[1]) end
return 1

--# look_count | H | owner | ro
return redis.call('hget', KEYS[1], ARGV[1])

--# look_fields | H | | ro
return redis.call('hgetall', KEYS[1])

--# look_names_and_values | H | | ro
return {redis.call('hkeys', KEYS[1]), redis.call('hvals', KEYS[1]), redis.call('hlen', KEYS[1])}

--# look_held_and_how_long | H | owner | time ro
return {redis.call('hexists', KEYS[1], ARGV[1]), redis.call('pttl', KEYS[1])}

--# kind_before_use | H | owner ms
local kind = redis.call('type', KEYS[1])['ok']
if kind == 'none' or kind == 'hash' then
    redis.call('hincrby', KEYS[1], ARGV[1], 2)
    redis.call('pexpire', KEYS[1], ARGV[2])
    return kind
end
return 'is a ' .. kind
