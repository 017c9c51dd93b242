-- Scripts over several keys: all or none of several locks, marks beside a lock, slots.

--# take_all | S S | owner ms
for _, key in ipairs(KEYS) do
    if redis.call('exists', key) == 1 then return 0 end
end
for _, key in ipairs(KEYS) do
    redis.call('set', key, ARGV[1], 'PX', ARGV[2])
end
return #KEYS

--# take_all_three | S S S | owner ms
local n = 0
for i = 1, #KEYS do
    if redis.call('get', KEYS[i]) then return {n, KEYS[i] == KEYS[#KEYS]} end
    n = n + 1
end
for i = 1, #KEYS do redis.call('set', KEYS[i], ARGV[1], 'PX', ARGV[2]) end
return {n, true}

--# prolong_all | S S | owner ms
for _, key in ipairs(KEYS) do
    if redis.call('get', key) ~= ARGV[1] then return 0 end
end
for i, key in ipairs(KEYS) do redis.call('set', key, ARGV[1], 'PX', ARGV[2]) end
return #KEYS

--# release_each_of_mine | S S | owner
local count = 0
for i, key in ipairs(KEYS) do
    if redis.call('get', key) == ARGV[1] then
        redis.pcall('del', key)
        count = count + 1
    end
end
return count

--# release_all_or_none | S S S | owner
local seen = redis.call('mget', KEYS[1], KEYS[2], KEYS[3])
for i = 1, 3 do
    if seen[i] ~= ARGV[1] then return -i end
end
return redis.call('del', unpack(KEYS))

--# renew_each | H H | owner ms
local done = {}
for i = 1, #KEYS, 1 do
    if redis.call('hexists', KEYS[i], ARGV[1]) == 1 then
        redis.call('pexpire', KEYS[i], ARGV[2])
        done[i] = 1
    else
        done[i] = 0
    end
end
return done

--# first_free_slot | S S S | owner s
for index, value in pairs(redis.call('mget', unpack(KEYS))) do
    if not value then
        redis.call('set', KEYS[index], ARGV[1], 'EX', ARGV[2])
        return index
    end
end

--# leave_with_answer_kept | H M | owner ms "ch"
local said = redis.call('get', KEYS[2])
if said ~= false then return tonumber(said) end
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end
local left = redis.call('hincrby', KEYS[1], ARGV[1], -1)
if left > 0 then
    redis.call('pexpire', KEYS[1], ARGV[2])
    redis.call('set', KEYS[2], 0, 'px', 20000)
    return 0
end
redis.call('del', KEYS[1])
redis.call('publish', ARGV[3], 0)
redis.call('set', KEYS[2], 1, 'px', 20000)
return 1

--# forget_answer | M |
return redis.call('del', KEYS[1])

--# take_once_per_request | S M | owner ms
local before = redis.call('get', KEYS[2])
if before then return before end
local got = redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
local answer = got and 'yes' or 'no'
redis.call('set', KEYS[2], answer, 'PX', 40000)
return answer

--# lock_behind_a_gate | S S | owner ms
if redis.call('exists', KEYS[2]) == 1 and redis.call('get', KEYS[2]) ~= ARGV[1] then
    return redis.error_reply('SHUT the gate')
end
return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) or redis.status_reply('BUSY')

--# swap_two | S S | owner ms
local a, b = redis.call('get', KEYS[1]), redis.call('get', KEYS[2])
if not a or not b then return 0 end
redis.call('set', KEYS[1], b, 'PX', ARGV[2])
redis.call('set', KEYS[2], a, 'PX', ARGV[2])
return {a, b}

--# move | S S | owner ms
if redis.call('get', KEYS[1]) ~= ARGV[1] or redis.call('exists', KEYS[2]) == 1 then return 0 end
redis.call('del', KEYS[1])
redis.call('set', KEYS[2], ARGV[1], 'PX', ARGV[2])
return 1

--# same_key_twice | S | owner ms
redis.call('set', KEYS[1], 'between', 'PX', 30000)
redis.call('del', KEYS[1])
redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
return redis.call('get', KEYS[1])

--# exclusive_over_string_and_hash | S H | owner ms
if redis.call('exists', KEYS[1], KEYS[2]) > 0 then return 0 end
redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('hset', KEYS[2], ARGV[1], 1)
redis.call('pexpire', KEYS[2], ARGV[2])
return 1
