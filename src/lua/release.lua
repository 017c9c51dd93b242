-- release: ends holds; also the undo of an acquire. By operation, never by owner alone: it frees what that
-- very operation took and nothing else. Always allowed, also late and in quarantine.
--
-- KEYS   one lock an item
-- ARGV   (unused) call broker; then an item: op tomb more
--          tomb   0 for an operation of this broker; of another one: ms for which op is remembered as gone, so that a late
--                 copy of the request that creates it finds the way shut, and a repeat of this one gets the same answer
--          more   "-": the lock as a whole, and the first ticket in the line is called up; else all of these, with commas:
--          ticket of one who lets others go first, or had it for a moment only, and lines up at its place (see
--                 line_up.lua); "-": nobody
--          next   "call": the first ticket in the line is called up; "wait": the broker will see to that, once the
--                 other servers know too (pass.lua)
--          part   which share (shares.lua); "-": the lock as a whole
-- Reply  {time, call}: each item 1 0; or {time, call, code, line, ...}:
--          1 released   0 nothing was there   -1 there under another operation
--          line   with "wait", how many tickets stand in the line, of which one may be called up
-- Twice  the same answer, as long as it is remembered
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
--@ hold.lua
--@ rare.lua
--@ call_up.lua
local WIDTH = 3
local call, KEYS, ARGV, n = redis.call, KEYS, ARGV, #KEYS
local CALL, LAST = tonumber(ARGV[2]), 'last:' .. ARGV[3]
local reply = {now, CALL}

-- Ends what is held there under op: the code, and whether it was there just now.
local function free(key, hold, op)
    local text = look(hold)
    local held = text and text:match(OP)
    if held == op then
        call('DEL', hold)
        return 1, true
    elseif call('GET', gone_key(key, op)) == 'released' then
        return 1
    end
    return text and -1 or 0
end

-- The usual call: exclusive holds, each of another lock, that nobody needs to remember. What one command can do for all of
-- them is not asked one by one. False: it is no such call, and nothing has been done.
local function is_usual()
    local seen = {}
    for i = 1, n do
        local a, key = i * WIDTH, KEYS[i]
        if ARGV[a + 3] ~= '-' or ARGV[a + 2] ~= '0' or seen[key] then
            return false
        end
        seen[key] = true
    end
    local texts, ended, lines = call('MGET', unpack(KEYS)), {}, {}
    for i = 1, n do
        local key, op, text, code = KEYS[i], ARGV[i * WIDTH + 1], texts[i], 1
        if text and text:match(OP) == op then
            ended[#ended + 1], lines[#lines + 1] = key, key .. ':line'
        else
            code = free(key, key, op)
        end
        reply[2 * i + 1], reply[2 * i + 2] = code, 0
    end
    if #ended == 0 then
        return true
    elseif #ended == n then
        reply = {now, CALL}
    end
    call('DEL', unpack(ended))
    if call('EXISTS', unpack(lines)) > 0 then
        for _, key in ipairs(ended) do
            call_up(key)
        end
    end
    return true
end

-- All that is not usual; made when it is needed.
local function special()
    --@ line_up.lua
    --@ shares.lua
    local function of_more(key, op, more)
        local ticket, place, turn, part = more:match('^([^,]*),([^,]*),([^,]*),(.*)$')
        if part ~= '-' then
            forget_permit(key, part, op)
        end
        local code, was_there = free(key, hold_key(key, part), op)
        if was_there and part ~= '-' then
            call('ZREM', key .. ':shares', part)
        end
        if was_there and ticket ~= '-' then
            line_up(key, ticket, place)
        end
        -- among readers the last but one makes room too: for a reader who wants the lock alone
        local room = part:byte() ~= 114 or (shares(key) <= 1 and call('EXISTS', key) == 0) -- r
        if turn ~= 'call' then
            return code, room and call('LLEN', key .. ':line') or 0
        elseif was_there and room then
            call_up(key)
        end
        return code, 0
    end

    for i = 1, n do
        local key, a = KEYS[i], i * WIDTH
        local op, tomb, more = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
        local code, line = 0, 0
        if more == '-' then
            local was_there
            code, was_there = free(key, key, op)
            if was_there then
                call_up(key)
            end
        else
            code, line = of_more(key, op, more)
        end
        if tomb ~= '0' and code == 1 then
            bury(key, op, 'released', tomb)
        elseif tomb ~= '0' then
            bury(key, op, '', tomb, 'NX')
        end
        reply[2 * i + 1], reply[2 * i + 2] = code, line
    end
end

if not is_usual() then
    special()
end
-- From now on no copy of an earlier call of this broker takes anything (see vote.lua). At the end: a server whose memory
-- is full lets a script write only when it has deleted something.
if CALL > tonumber(call('HGET', 'holdfast:master', LAST) or 0) then
    call('HSET', 'holdfast:master', LAST, ARGV[2])
end
return reply
