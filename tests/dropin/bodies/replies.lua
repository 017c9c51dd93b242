-- What scripts answer, and how they fail.

--# nested | S | owner | ro
return {1, 'two', {3, {redis.call('get', KEYS[1])}}, ARGV[1]}

--# cut_at_nil | S | owner | ro
return {ARGV[1], redis.call('exists', KEYS[1]), nil, 4}

--# false_in_array | S | owner | ro
return {redis.call('get', KEYS[1]), false, true, 1}

--# numbers_are_cut | S | ms | ro
return {ARGV[1] / 1000.5, -2.9, 2.9, tonumber('0x10'), 3e3}

--# status_in_table | S | owner | ro
return {ok = 'MINE ' .. tostring(redis.call('exists', KEYS[1]))}

--# error_in_table | S | owner | ro
return {err = 'BUSY ' .. #ARGV[1]}

--# error_word_only | S | | ro
return redis.error_reply('nope')

--# nothing | S | | ro
local seen = redis.call('get', KEYS[1])

--# writes_then_fails | S | owner ms
redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
return redis.call('hget', KEYS[1], 'x')

--# writes_then_raises | S | owner ms
redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
error('after the write')

--# raises_a_table | S | owner
error({err = 'MYCODE something of mine'})

--# catches_wrong_type | S | owner ms
local reply = redis.pcall('hincrby', KEYS[1], 'n', 1)
if type(reply) == 'table' and reply.err then return {0, reply.err} end
redis.call('pexpire', KEYS[1], ARGV[2])
return {1, reply}

--# catches_by_pcall | S | owner
local ok, err = pcall(redis.call, 'hget', KEYS[1], ARGV[1])
if ok then return 'fine' end
return type(err) == 'table' and 'caught' or err

--# index_of_nil | S |
local seen = {redis.call('exists', KEYS[1])}
return seen.field.more

--# wrong_number_of_arguments | S |
return redis.call('get', KEYS[1], KEYS[1])

--# time_of_no_number | S | owner
redis.call('set', KEYS[1], ARGV[1], 'PX', 60000)
return redis.call('pexpire', KEYS[1], 'soon')

--# count_of_no_number | H | owner
redis.call('hset', KEYS[1], ARGV[1], 'many')
redis.call('pexpire', KEYS[1], 60000)
return redis.call('hincrby', KEYS[1], ARGV[1], 1)

--# helper_function | S | owner ms
local function try(key, owner, ms)
    local holder = redis.call('get', key)
    if not holder then
        redis.call('set', key, owner, 'PX', ms)
        return 'taken'
    end
    return holder == owner and 'kept' or 'refused'
end
local first = try(KEYS[1], ARGV[1], ARGV[2])
return {first, try(KEYS[1], ARGV[1], ARGV[2])}

--# text_functions | S | owner | ro
local holder = redis.call('get', KEYS[1]) or ''
return {string.upper(ARGV[1]), #holder, string.format('%s-%d', 'x', 7), table.concat({'a', 'b'}, ',')}

--# while_loop | S | owner ms
local tries = 0
while not redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) do
    tries = tries + 1
    if tries == 3 then return -1 end
end
return tries
