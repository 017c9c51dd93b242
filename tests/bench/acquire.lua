-- The plain re-entrant acquire as client libraries send it: what holdfast is measured against.
-- KEYS lock   ARGV owner lease-ms
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
    redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return nil
end
return redis.call('PTTL', KEYS[1])
