-- release: ends holds; also the undo of an acquire. By operation, never by owner alone: it frees what that
-- very operation took and nothing else. Always allowed, also late and in quarantine.
--
-- KEYS   one lock an item
-- ARGV   (unused) call; then an item: op tomb ticket place next part
--          tomb   ms for which op is remembered as gone, so that a late copy of the request that
--                 creates it finds the way shut, and a repeat of this one gets the same answer; 0: it is not
--          ticket of one who lets others go first, or had it for a moment only, and lines up at its place (see
--                 line_up.lua); "-": nobody
--          next   "call": the first ticket in the line is called up; "wait": the broker will see to that, once the
--                 other servers know too (pass.lua)
--          part   which share (shares.lua); "-": the lock as a whole
-- Reply  {time, call, code, line, ...}:  1 released   0 nothing was there   -1 there under another operation;
--        line: with "wait", how many tickets stand in the line, of which one may be called up
-- Twice  the same answer, as long as it is remembered
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
--@ call_up.lua
--@ line_up.lua
--@ shares.lua
local WIDTH = 6

local reply = {now, tonumber(ARGV[2])}
for i = 1, #KEYS do
    local key, a = KEYS[i], 2 + (i - 1) * WIDTH
    local op, tomb, part = ARGV[a + 1], ARGV[a + 2], ARGV[a + 6]
    local hold = hold_key(key, part)
    local held = redis.pcall('HGET', hold, 'op')
    local code, line = 0, 0
    if held == op then
        code = 1
        forget_permit(key, part)
        redis.call('DEL', hold)
        if part ~= '-' then
            redis.call('ZREM', key .. ':shares', part)
        end
        if ARGV[a + 3] ~= '-' then
            line_up(key, ARGV[a + 3], ARGV[a + 4])
        end
    elseif redis.call('GET', key .. ':gone:' .. op) == 'released' then
        code = 1
    elseif held then
        code = -1
    end
    -- among readers the last but one makes room too: for a reader who wants the lock alone
    local room = part:byte() ~= 114 or (shares(key) <= 1 and redis.call('EXISTS', key) == 0) -- r
    if ARGV[a + 5] ~= 'call' then
        line = room and redis.call('LLEN', key .. ':line') or 0
    elseif held == op and room then
        call_up(key)
    end
    if code == 1 and tomb ~= '0' then
        redis.call('SET', key .. ':gone:' .. op, 'released', 'PX', tomb)
    elseif tomb ~= '0' then
        redis.call('SET', key .. ':gone:' .. op, '', 'PX', tomb, 'NX')
    end
    reply[#reply + 1] = code
    reply[#reply + 1] = line
end
return reply
