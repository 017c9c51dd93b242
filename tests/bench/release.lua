-- The release that belongs to acquire.lua.
-- KEYS lock   ARGV owner
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    return nil
end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
    return 0
end
redis.call('DEL', KEYS[1])
return 1
