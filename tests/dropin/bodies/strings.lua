-- Scripts over one string, as people write them. Each begins with a line
-- --# name | keys | arguments | flags
-- keys: S a string that locks, H a hash that locks, M a mark beside it. Arguments: owner other ms s odd (ms that nobody else gives) flag, or a word in quotes.
-- Flags: time (its reply contains a time), ro (fit for EVAL_RO).

--# release_if_mine | S | owner
if redis.call('get', KEYS[1]) == ARGV[1] then
    return redis.call('del', KEYS[1])
end
return 0

--# release_by_unlink | S | owner
local holder = redis.call('GET', KEYS[1])
if holder ~= ARGV[1] then return false end
redis.call('UNLINK', KEYS[1])
return true

--# release_three_ways | S | owner
local holder = redis.call('get', KEYS[1])
if not holder then return -1 end
if holder == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0

--# release_says_why | S | owner
local holder = redis.call('get', KEYS[1])
if holder == false then return {err = 'GONE nobody holds it'} end
if holder ~= ARGV[1] then return redis.error_reply('NOTMINE it is ' .. holder) end
redis.call('del', KEYS[1])
return redis.status_reply('FREED')

--# release_and_tell | S | owner "ch"
if redis.call('get', KEYS[1]) == ARGV[1] then
    redis.call('del', KEYS[1])
    redis.call('publish', ARGV[2], ARGV[1])
    return 1
else
    return 0
end

--# release_by_getdel | S | owner
if redis.call('get', KEYS[1]) == ARGV[1] then
    return redis.call('getdel', KEYS[1])
end
return nil

--# release_for_anyone | S |
local was = redis.call('exists', KEYS[1])
redis.call('del', KEYS[1])
return was

--# prolong_if_mine | S | owner ms
if redis.call('get', KEYS[1]) == ARGV[1] then
    return redis.call('pexpire', KEYS[1], ARGV[2])
else
    return 0
end

--# prolong_in_seconds | S | owner s
local mine = redis.call('GET', KEYS[1]) == ARGV[1]
return mine and redis.call('EXPIRE', KEYS[1], tonumber(ARGV[2])) or 0

--# prolong_by | S | owner ms flag
local holder = redis.call('get', KEYS[1])
if not holder or holder ~= ARGV[1] then return 0 end
local left = redis.call('pttl', KEYS[1])
if left < 0 then return 0 end
local wanted = ARGV[2]
if ARGV[3] == '0' then wanted = left + ARGV[2] end
redis.call('pexpire', KEYS[1], wanted)
return 1

--# prolong_when_low | S | owner ms
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
if redis.call('pttl', KEYS[1]) > 70000 then return 2 end
redis.call('pexpire', KEYS[1], ARGV[2])
return 1

--# prolong_never_shorter | S | owner odd
if redis.call('get', KEYS[1]) == ARGV[1] then
    return redis.call('pexpire', KEYS[1], ARGV[2], 'GT')
end
return -1

--# prolong_until | S | owner ms
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
local now = redis.call('time')
return redis.call('pexpireat', KEYS[1], now[1] * 1000 + math.floor(now[2] / 1000) + ARGV[2])

--# prolong_by_set_xx | S | owner ms
if redis.call('get', KEYS[1]) == ARGV[1] then
    return redis.call('set', KEYS[1], ARGV[1], 'XX', 'PX', ARGV[2])
end
return false

--# prolong_by_psetex | S | owner ms
if redis.call('get', KEYS[1]) == ARGV[1] then
    redis.call('psetex', KEYS[1], ARGV[2], ARGV[1])
    return 'renewed'
end
return 'lost'

--# prolong_by_setex | S | owner s
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('setex', KEYS[1], ARGV[2], ARGV[1]) end
return 0

--# keep_or_time | S | owner s
if redis.call('get', KEYS[1]) == ARGV[1] then
    if tonumber(ARGV[2]) > 60 then return redis.call('persist', KEYS[1]) end
    return redis.call('expire', KEYS[1], ARGV[2])
end
return 0

--# take | S | owner ms
return redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2])

--# take_as_number | S | owner ms
if redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then return 1 end
return 0

--# take_as_boolean | S | owner ms
local got = redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if got then return true else return false end

--# take_in_two_steps | S | owner s
if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then
    redis.call('expire', KEYS[1], ARGV[2])
    return 1
end
return 0

--# take_in_two_steps_ms | S | owner ms
local got = redis.call('SETNX', KEYS[1], ARGV[1])
if got == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return got == 1

--# take_if_absent | S | owner ms
if redis.call('exists', KEYS[1]) == 1 then return 0 end
redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1

--# take_if_not_got | S | owner s
if redis.call('get', KEYS[1]) then return nil end
return redis.call('set', KEYS[1], ARGV[1], 'EX', ARGV[2])

--# take_or_keep | S | owner ms
local holder = redis.call('get', KEYS[1])
if holder == ARGV[1] then
    redis.call('pexpire', KEYS[1], ARGV[2])
    return true
elseif not holder then
    redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
    return true
end
return false

--# take_or_keep_if_allowed | S | owner ms flag
local exists = redis.call('exists', KEYS[1]) == 1
if (ARGV[3] == '1' and not exists) or redis.call('get', KEYS[1]) == ARGV[1] then
    return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
end

--# take_or_say_how_long | S | owner ms | time
if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return -7 end
return redis.call('pttl', KEYS[1])

--# take_or_say_who | S | owner ms
local holder = redis.call('get', KEYS[1])
if holder then return {0, holder} end
redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {1, ARGV[1]}

--# take_and_get | S | owner ms
return redis.call('set', KEYS[1], ARGV[1], 'NX', 'GET', 'PX', ARGV[2])

--# take_without_time | S | owner
return redis.call('setnx', KEYS[1], ARGV[1])

--# take_by_hash_of_owner | S | owner ms
local id = redis.sha1hex(ARGV[1])
if redis.call('set', KEYS[1], id, 'NX', 'PX', ARGV[2]) then return id end
return redis.call('get', KEYS[1])

--# take_with_prefix | S | owner ms
local holder = redis.call('get', KEYS[1])
local mine = 'worker:' .. ARGV[1]
if holder and string.sub(holder, 1, #mine) ~= mine then return 0 end
redis.call('set', KEYS[1], mine .. ':x', 'px', ARGV[2])
return 1

--# hand_over | S | owner other ms
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('set', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1

--# hand_over_with_its_time | S | owner other
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
local left = redis.call('pttl', KEYS[1])
if left > 0 then
    redis.call('set', KEYS[1], ARGV[2], 'PX', left)
else
    redis.call('set', KEYS[1], ARGV[2])
end
return 1

--# hand_over_keepttl | S | owner other
if redis.call('get', KEYS[1]) == ARGV[1] then
    return redis.call('set', KEYS[1], ARGV[2], 'KEEPTTL')
end
return {err = 'NOTMINE'}

--# hand_over_by_getset | S | owner
if redis.call('exists', KEYS[1]) == 0 then return false end
return redis.call('getset', KEYS[1], ARGV[1])

--# take_in_its_database | S | owner ms
redis.pcall('SELECT', 0)
if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.status_reply('OK') end
if redis.call('getrange', KEYS[1], 0, 2) == string.sub(ARGV[1], 1, 3) then
    return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return redis.call('getrange', KEYS[1], -3, -1)

--# look_who | S | | ro
return redis.call('get', KEYS[1])

--# look_mine | S | owner | ro
return redis.call('get', KEYS[1]) == ARGV[1]

--# look_mine_how_long | S | owner | time ro
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pttl', KEYS[1]) end
return -3

--# look_who_and_how_long | S | | time ro
return {redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1])}

--# look_how_long_in_seconds | S | | time ro
return {redis.call('ttl', KEYS[1]), redis.call('exists', KEYS[1])}

--# look_how_much | S | | ro
return {redis.call('strlen', KEYS[1]), redis.call('type', KEYS[1])}
