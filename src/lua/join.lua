-- join: a broker greets this server. The first one after a start, or after the data was lost, finds no
-- mark of this run and puts the server into quarantine: leases that it has forgotten may still be
-- out, whatever it was told to persist. The mark is on the server, so that every broker sees the same.
--
-- ARGV   run_id quarantine settings force
--          quarantine   ms; 0: none is needed
--          settings     what all brokers in front of these masters must agree on
--          force        1: these settings count from now on (an administrator's word)
-- Reply  {time, state, left, settings, high}
--          state        "active" or "quarantine"
--          left         ms of the quarantine that are left; 0: it is over and `activate` may follow
--          settings     those in force: the first broker's
--          high         highest token that this server has given
-- Twice  a repeat finds the mark and changes nothing.
local RUN, QUARANTINE, SETTINGS, FORCE = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4] == '1'
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Calls are numbered by the time in us, and their deadlines are seconds: nothing that old is still under way.
local FORGET_MS = 3600000

-- For people who find the key. It is longer than 64 bytes: Redis then keeps the hash as a table at once, and not as a
-- list that each call would go through as long as it has few counters.
local ABOUT = 'state and token counters of holdfast, a lock broker: tokens go on from here, so leave it alone'

local mark = redis.call('HMGET', 'holdfast:master', 'run_id', 'state', 'until', 'settings')
local high = 0
local all = redis.call('HGETALL', 'holdfast:master')
for i = 1, #all, 2 do
    if all[i] == 'base' or all[i]:match('^%d+$') then
        high = math.max(high, tonumber(all[i + 1]))
    elseif all[i]:match('^last:') and all[i + 1] / 1000 < now - FORGET_MS then
        redis.call('HDEL', 'holdfast:master', all[i])
    end
end

-- How many masters there are decides which counter a lock has (acquire.lua): whichever it was, no token comes again.
local function write(...)
    redis.call('HSET', 'holdfast:master', 'settings', SETTINGS, 'base', string.format('%.0f', high), ...)
    mark[4] = SETTINGS
end

if mark[1] ~= RUN then
    redis.call('HDEL', 'holdfast:master', 'ready')
    local till = now + QUARANTINE
    if mark[2] == 'quarantine' then -- of the run before
        till = math.max(till, tonumber(mark[3]))
    end
    mark = {RUN, till > now and 'quarantine' or 'active', till}
    write('run_id', RUN, 'state', mark[2], 'until', string.format('%.0f', mark[3]), 'about', ABOUT)
elseif FORCE and mark[4] ~= SETTINGS then
    write()
end
local left = 0
if mark[2] ~= 'active' then
    left = math.max(0, tonumber(mark[3]) - now)
end
return {now, mark[2], left, mark[4], high}
