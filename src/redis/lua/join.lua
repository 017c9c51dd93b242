-- join: a broker greets this server. The first one after a start, or after the data was lost, finds no mark of this run and
-- puts the server into quarantine (safety R5): leases that it has forgotten may still be out, whatever it was told to
-- persist. The mark is on the server, so that every broker sees the same.
--
-- A life is one time that a server serves as one of the masters, "<number> <run_id>", numbered for each master. Each server
-- keeps the lives of all masters that brokers have told it. So a run whose data say that it is the master, while another one
-- served there meanwhile, begins a new life, and brokers that have just started hear of it.
--
-- ARGV   run_id quarantine settings force digest promoted, then for each master, this one first: master life
--          quarantine   ms; 0: none is needed
--          settings     what all brokers in front of these masters must agree on
--          force        "1": these settings count from now on (an administrator's word)
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
--@ now.lua
local RUN, QUARANTINE, SETTINGS, FORCE, DIGEST = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4] == '1', ARGV[5]
local PROMOTED, MASTERS = ARGV[6] or '', 7 -- the latter: the first of the arguments that are a master and its life

-- Calls are numbered by the time in us, and their deadlines are seconds away: nothing that old is still under way.
local FORGET_MS = 3600000

-- For people who find the key. It is longer than 64 bytes: Redis then keeps the hash as a table at once, and not as a
-- list that each call would go through as long as it has few counters.
local ABOUT = 'state and token counters of holdfast, a lock broker: tokens go on from here, so leave it alone'

-- No broker takes a token above MOST, so none has been told. A counter up there, which a broker with an absurd clock has
-- left, goes on above all that others can have made of their clocks (redis/token.h), and Lua can count again.
local MOST, AHEAD_MS = 9007199254740992, 7200000

-- ---- counters, calls and lives in the mark ----

local run_id, state, till, settings, promoted = unpack(
    redis.call('HMGET', 'holdfast:master', 'run_id', 'state', 'until', 'settings', 'promoted'))
local high, lives, lost, roll = 0, {}, {}, {}
local all = redis.call('HGETALL', 'holdfast:master')
for i = 1, #all, 2 do
    local field, value = all[i], all[i + 1]
    local is_counter = field == 'base' or field:match('^%d+$')
    if is_counter and tonumber(value) > MOST then
        lost[#lost + 1] = field
    elseif is_counter then
        high = math.max(high, tonumber(value))
    elseif field:match('^last:') and value / 1000 < now - FORGET_MS then
        redis.call('HDEL', 'holdfast:master', field)
    elseif field:match('^life:') then
        lives[field] = value
    elseif field == 'veto' or field:match('^broker:') or field:match('^left:') or field:match('^sign:')
        or field:match('^wait:') then
        roll[#roll + 1] = field
    end
end

if lost[1] then
    high = math.max(high, (now + AHEAD_MS) * 1024)
    redis.call('HDEL', 'holdfast:master', 'ready')
end
for i = 1, #lost do
    redis.call('HSET', 'holdfast:master', lost[i], string.format('%.0f', high))
end

-- ---- lives that the broker has heard of ----

local function number(life)
    return tonumber(life:match('^%d+')) or 0
end

local function set_life(field, life)
    if life ~= lives[field] then
        redis.call('HDEL', 'holdfast:master', 'ready') -- first: behind it a full server takes what follows as well
        redis.call('HSET', 'holdfast:master', field, life)
        lives[field] = life
    end
end

-- Of two lives with the same number the brokers have each seen another one: any order will do, if all keep to it.
local believed = not settings or settings == SETTINGS or FORCE -- else the broker may be one of other masters
for i = MASTERS + 2, #ARGV, 2 do
    local field, heard = 'life:' .. ARGV[i], believed and ARGV[i + 1] or ''
    local known = lives[field] or ''
    if number(heard) > number(known) or number(heard) == number(known) and heard > known then
        set_life(field, heard)
    end
end

-- ---- the mark of this run ----

local OWN, heard = 'life:' .. (ARGV[MASTERS] or ''), believed and ARGV[MASTERS + 1] or ''
local own = lives[OWN] or ''
local was_another = run_id ~= RUN or number(heard) >= number(own) and heard ~= own
    or PROMOTED ~= '' and PROMOTED ~= '-1' and PROMOTED ~= promoted

-- Puts the settings in force. How many masters there are decides which counter a lock has (acquire.lua); from `base` on no
-- token comes again, whichever counter it was.
local function write(...)
    redis.call('HDEL', 'holdfast:master', 'ready')
    redis.call('HSET', 'holdfast:master', 'settings', SETTINGS, 'digest', DIGEST, 'base', string.format('%.0f', high), ...)
    settings = SETTINGS
end

-- Forgets what brokers have said under their names (roll.lua): to another life, or under another list of them.
local function clear_roll()
    for i = 1, #roll do
        redis.call('HDEL', 'holdfast:master', roll[i])
    end
end

if was_another then
    clear_roll()
    local ends = now + QUARANTINE
    redis.call('DEL', 'holdfast:planted')
    if state == 'quarantine' then -- of the run before
        ends = math.max(ends, tonumber(till))
    end
    state, till = ends > now and 'quarantine' or 'active', ends
    write('run_id', RUN, 'state', state, 'until', string.format('%.0f', till), 'about', ABOUT, 'promoted', PROMOTED)
    set_life(OWN, string.format('%.0f ', math.max(number(own), number(heard)) + 1) .. RUN)
    if state == 'quarantine' then
        redis.call('HSET', 'holdfast:planted', 'since', string.format('%.0f', now)) -- replant.lua
    end
elseif FORCE and settings ~= SETTINGS then
    clear_roll()
    write()
    if state ~= 'active' then
        redis.call('HSET', 'holdfast:master', 'veto', 'its settings are new')
    end
end
local left = state ~= 'active' and math.max(0, tonumber(till) - now) or 0
local reply = {now, state, left, settings, high}
for i = MASTERS, #ARGV, 2 do
    reply[#reply + 1] = lives['life:' .. ARGV[i]] or ''
end
return reply
