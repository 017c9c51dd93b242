-- join: a broker greets this server. The first one after a start, or after the data was lost, finds no
-- mark of this run and puts the server into quarantine: leases that it has forgotten may still be
-- out, whatever it was told to persist. The mark is on the server, so that every broker sees the same.
--
-- A life is one time that a server serves as one of the masters, "<number> <run_id>", numbered for each master. Each server
-- keeps those of all masters that brokers have told it: so a run whose data say that it is the master, and another one
-- served there meanwhile, begins a new life, and brokers that have just started hear of it.
--
-- ARGV   run_id quarantine settings force digest promoted, then for each master, this one first: master life
--          quarantine   ms; 0: none is needed
--          settings     what all brokers in front of these masters must agree on
--          force        1: these settings count from now on (an administrator's word)
--          digest       of these settings, which the scripts carry
--          promoted     where this run has ended to be a replica of another server; "-1" or "": it has been none
--          master       its name, the same at all brokers
--          life         its newest that the broker has heard of; "": none
-- Reply  {time, state, left, settings, high, life, ...}
--          state        "active" or "quarantine"
--          left         ms of the quarantine that are left; 0: it is over and `activate` may follow
--          settings     those in force: the first broker's
--          high         highest token that this server has given
--          life         the newest of each master that was asked for
-- Twice  a repeat finds the mark and changes nothing.
local RUN, QUARANTINE, SETTINGS, FORCE, DIGEST = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4] == '1', ARGV[5]
local PROMOTED = ARGV[6] or ''
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Calls are numbered by the time in us, and their deadlines are seconds: nothing that old is still under way.
local FORGET_MS = 3600000

-- For people who find the key. It is longer than 64 bytes: Redis then keeps the hash as a table at once, and not as a
-- list that each call would go through as long as it has few counters.
local ABOUT = 'state and token counters of holdfast, a lock broker: tokens go on from here, so leave it alone'

-- No broker takes a token above it, so none has been told: a counter up there, which a broker with an absurd clock has left,
-- goes on above all that others can have made of their clocks (hybrid.h), and Lua can count again.
local MOST, AHEAD_MS = 9007199254740992, 7200000

local mark = redis.call('HMGET', 'holdfast:master', 'run_id', 'state', 'until', 'settings', 'promoted')
local high, lives, lost = 0, {}, {}
local all = redis.call('HGETALL', 'holdfast:master')
for i = 1, #all, 2 do
    local is_counter = all[i] == 'base' or all[i]:match('^%d+$')
    if is_counter and tonumber(all[i + 1]) > MOST then
        lost[#lost + 1] = all[i]
    elseif is_counter then
        high = math.max(high, tonumber(all[i + 1]))
    elseif all[i]:match('^last:') and all[i + 1] / 1000 < now - FORGET_MS then
        redis.call('HDEL', 'holdfast:master', all[i])
    elseif all[i]:match('^life:') then
        lives[all[i]] = all[i + 1]
    end
end

if lost[1] then
    high = math.max(high, (now + AHEAD_MS) * 1024)
    redis.call('HDEL', 'holdfast:master', 'ready')
end
for i = 1, #lost do
    redis.call('HSET', 'holdfast:master', lost[i], string.format('%.0f', high))
end

local function number(life)
    return tonumber(life:match('^%d+')) or 0
end

-- Of two with the same number the brokers have seen each another one: any order will do, if all keep to it.
local function set_life(field, life)
    if life ~= lives[field] then
        redis.call('HDEL', 'holdfast:master', 'ready') -- first: behind it a full server takes what follows as well
        redis.call('HSET', 'holdfast:master', field, life)
        lives[field] = life
    end
end
local believed = not mark[4] or mark[4] == SETTINGS or FORCE -- else the broker may be one of other masters
for i = 9, #ARGV, 2 do
    local field, heard = 'life:' .. ARGV[i], believed and ARGV[i + 1] or ''
    local known = lives[field] or ''
    if number(heard) > number(known) or number(heard) == number(known) and heard > known then
        set_life(field, heard)
    end
end
local OWN, heard = 'life:' .. (ARGV[7] or ''), believed and ARGV[8] or ''
local own = lives[OWN] or ''
local was_another = mark[1] ~= RUN or number(heard) >= number(own) and heard ~= own
    or PROMOTED ~= '' and PROMOTED ~= '-1' and PROMOTED ~= mark[5]

-- How many masters there are decides which counter a lock has (acquire.lua): whichever it was, no token comes again.
local function write(...)
    redis.call('HDEL', 'holdfast:master', 'ready')
    redis.call('HSET', 'holdfast:master', 'settings', SETTINGS, 'digest', DIGEST, 'base', string.format('%.0f', high), ...)
    mark[4] = SETTINGS
end

if was_another then
    local till = now + QUARANTINE
    if mark[2] == 'quarantine' then -- of the run before
        till = math.max(till, tonumber(mark[3]))
    end
    mark = {RUN, till > now and 'quarantine' or 'active', till}
    write('run_id', RUN, 'state', mark[2], 'until', string.format('%.0f', mark[3]), 'about', ABOUT, 'promoted', PROMOTED)
    set_life(OWN, string.format('%.0f ', math.max(number(own), number(heard)) + 1) .. RUN)
elseif FORCE and mark[4] ~= SETTINGS then
    write()
end
local left = 0
if mark[2] ~= 'active' then
    left = math.max(0, tonumber(mark[3]) - now)
end
local reply = {now, mark[2], left, mark[4], high}
for i = 7, #ARGV, 2 do
    reply[#reply + 1] = lives['life:' .. ARGV[i]] or ''
end
return reply
