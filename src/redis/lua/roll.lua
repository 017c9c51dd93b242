-- roll: a broker says under its name that it is here, and in quarantine that all it remembers stands on this server: it
-- signs. When all brokers that there are have signed, that ends the quarantine, in the same step (safety R15).
--
-- The mark holdfast:master has, for each name:
--   broker:<name>  "<instance> <left> <token> <time>": which process has the name, what the one before it said when it left
--                  (left: -1 when there was none in this life, -2 when its place was taken), and since when (ms of this
--                  server)
--   left:<name>    "<left> <token>": the last one has left, and nobody has come since
--   sign:<name>    "<instance> <token>": has signed in this life
--   wait:<name>    the others that have not been here since this instance has come (names with commas between)
-- and `veto`: why this life has no roll call. join.lua deletes all of these when a life begins.
--
-- ARGV   run_id slot life digest name instance number what token left names waits longest seen
--          slot      name of this master
--          life      of it, which the broker has joined
--          digest    of the settings of this broker, of which `names` is a part
--          instance  the id of the broker
--          number    of its last call (call.lua)
--          what      "here"; "sign"; "leave": nothing comes from this instance any more
--          token     sign, leave: the highest that it knows of, or can have made of its clock
--          left      leave: for how long its clients may still rely on something, ms
--          names     of all brokers, with commas between
--          waits     "1": an instance that comes to an active server counts as admitted once all others have been here
--          longest   ms after which nothing counts any more that an instance was told elsewhere before it came
--          seen      the time of this server in the last reply to this instance, ms; 0: it has had none in this life
-- Reply  {time, state, left, record, veto, missing}; where `waits` is "1" one more:
--          record    as in broker:<name>; "": another instance has the name, which came later
--          missing   names without a signature, with commas between
--          waits     as in wait:<name>; "": this instance is admitted
-- Twice  the same again changes nothing.
--@ now.lua
--@ end_quarantine.lua
local RUN, SLOT, LIFE, DIGEST, NAME, INSTANCE, NUMBER, WHAT, TOKEN, LEFT, NAMES, WAITS, LONGEST, SEEN =
    unpack(ARGV)

-- How long the calls of an instance are refused whose place another one has taken; calls are numbered by the time in us.
local REFUSED_MS = 86400000
local PLACE, LAST = 'broker:' .. NAME, 'last:' .. INSTANCE

local run_id, digest, state, till, life, veto, record, last, base = unpack(redis.call('HMGET', 'holdfast:master', 'run_id',
    'digest', 'state', 'until', 'life:' .. SLOT, 'veto', PLACE, LAST, 'base'))
if run_id ~= RUN or life ~= LIFE then
    return redis.error_reply('STRANGER this server has lost its data')
elseif digest ~= DIGEST then
    return redis.error_reply('SETTINGS other settings than those of this broker are in force here')
end

-- Every later call of this instance is refused (REPEATED).
local function shut(instance)
    redis.call('HSET', 'holdfast:master', 'last:' .. instance, string.format('%.0f', (now + REFUSED_MS) * 1000))
end

-- Returns `names` without this one.
local function without(names, gone)
    local rest = {}
    for name in names:gmatch('[^,]+') do
        rest[#rest + 1] = name ~= gone and name or nil
    end
    return table.concat(rest, ',')
end

-- Which other brokers have not been here since this one has come to a server that was active already. An instance that has
-- just started knows nothing of another server that the others may be using by now: each of them was at this one after it
-- (safety R17).
local function wait_for_others()
    local others = WAITS == '1' and state == 'active' and without(NAMES, NAME) or ''
    redis.call('HDEL', 'holdfast:master', 'wait:' .. NAME)
    if others ~= '' then
        redis.call('HSET', 'holdfast:master', 'wait:' .. NAME, others)
    end
end

-- When the instance in this record has come.
local function since(place)
    return tonumber(place:match(' (%d+)$'))
end

-- Those who came before the last reply that this one has had need not wait for it any more: a call that has been on its way
-- since before they came says nothing. Nor does one that waits itself, as it knows no more than they do, until whatever was
-- granted elsewhere before it came is over.
local function show_up()
    if redis.call('HGET', 'holdfast:master', 'wait:' .. NAME) and now - since(record) < tonumber(LONGEST) then
        return
    end
    for name in NAMES:gmatch('[^,]+') do
        local names, place = unpack(redis.call('HMGET', 'holdfast:master', 'wait:' .. name, 'broker:' .. name))
        local rest = names and place and since(place) < tonumber(SEEN) and without(names, NAME) or names
        if rest == '' then
            redis.call('HDEL', 'holdfast:master', 'wait:' .. name)
        elseif rest ~= names then
            redis.call('HSET', 'holdfast:master', 'wait:' .. name, rest)
        end
    end
end

local function take_place()
    wait_for_others()
    local before, left = record and record:match('^%S+'), redis.call('HGET', 'holdfast:master', 'left:' .. NAME)
    redis.call('HDEL', 'holdfast:master', 'left:' .. NAME) -- first: behind it a full server takes what follows as well
    record = INSTANCE .. ' ' .. (before and '-2 0' or left or '-1 0') .. string.format(' %.0f', now)
    redis.call('HSET', 'holdfast:master', PLACE, record)
    if not before then
        return
    end
    shut(before)
    if state ~= 'active' then
        veto = 'two brokers have the name ' .. NAME
        redis.call('HSET', 'holdfast:master', 'veto', veto)
    end
end

-- Is it an instance whose place was taken, or that has left?
local function is_shut()
    return last and last / 1000 > now + REFUSED_MS / 2
end

local is_ours = record and record:match('^%S+') == INSTANCE
if not is_ours and is_shut() then
    record = ''
elseif WHAT == 'leave' then
    if is_ours and state == 'active' then
        redis.call('HDEL', 'holdfast:master', PLACE)
        redis.call('HSET', 'holdfast:master', 'left:' .. NAME, LEFT .. ' ' .. TOKEN)
        shut(INSTANCE)
    end
elseif not is_ours then
    take_place()
end

if WAITS == '1' and record ~= '' and WHAT ~= 'leave' then
    show_up()
end
local missing, highest = {}, 0
if state ~= 'active' then
    if WHAT == 'sign' and record ~= '' and not veto then
        redis.call('HSET', 'holdfast:master', 'sign:' .. NAME, INSTANCE .. ' ' .. TOKEN)
        if not last or NUMBER - last > 0 then
            redis.call('HSET', 'holdfast:master', LAST, NUMBER)
        end
    end
    for name in NAMES:gmatch('[^,]+') do
        local token = (redis.call('HGET', 'holdfast:master', 'sign:' .. name) or ''):match(' (%d+)$')
        missing[#missing + 1] = not token and name or nil
        highest = math.max(highest, tonumber(token or 0))
    end
    if not missing[1] and not veto then
        end_quarantine(highest, base)
        state = 'active'
    end
end
local left = state ~= 'active' and math.max(0, tonumber(till) - now) or 0
local reply = {now, state, left, record or '', veto or '', table.concat(missing, ',')}
if WAITS == '1' then
    reply[7] = redis.call('HGET', 'holdfast:master', 'wait:' .. NAME) or ''
end
return reply
