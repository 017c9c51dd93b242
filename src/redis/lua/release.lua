-- release: ends holds; also the undo of an acquire. By operation, never by owner alone: it frees what that
-- very operation took and nothing else. Always allowed, also late and in quarantine.
--
-- KEYS   one lock an item; an operation comes once in a call
-- ARGV   (unused) call broker; then an item: what
--          what   op: an exclusive hold of an operation of this broker; the first ticket in the line is called up. Or op, a
--                 blank, and all of these, with commas between them:
--          tomb   0 for an operation of this broker; of another one: ms for which op is remembered as gone, so that a late
--                 copy of the request that creates it finds the way shut, and a repeat of this one gets the same answer;
--                 and its broker is told
--          ticket of one who lets others go first, or had it for a moment only, and lines up at its place (see
--                 line_up.lua); "-": nobody
--          next   "call": the first ticket in the line is called up; "wait": the broker will see to that, once the
--                 other servers know too (pass.lua)
--          part   which share (shares.lua); "-": the lock as a whole
-- Reply  in brief (call.lua): each item 1 0; or {time, call, code, line, ...}:
--          1 released   0 nothing was there   -1 there under another operation
--          line   with "wait", how many tickets stand in the line, of which one may be called up
-- Twice  the same answer, as long as it is remembered
local HEAD, OPERATION = 3, '^op=(%S+) ' -- the latter as in hold.lua, which the usual way does without
local call, KEYS, ARGV, n = redis.call, KEYS, ARGV, #KEYS
local CALL, LAST = ARGV[2] + 0, 'last:' .. ARGV[3]
local clock = call('TIME')
local now = clock[1] * 1000 + clock[2] / 1000
now = now - now % 1
local reply

-- The usual: exclusive holds that are all there. What one command can do for all of them is not asked one by one; and all
-- functions are made when they are needed, because to make them takes longer than to serve a lock.
local texts, lines, usual = call('MGET', unpack(KEYS)), {}, true
for i = 1, n do
    local text = texts[i]
    usual = usual and text and text:match(OPERATION) == ARGV[HEAD + i]
    lines[i] = KEYS[i] .. ':line'
end

if usual then
    call('DEL', unpack(KEYS))
    if call('EXISTS', unpack(lines)) > 0 then
        --@ call_up.lua
        for i = 1, n do
            call_up(KEYS[i])
        end
    end
else
    reply = {now, CALL}
    --@ hold.lua
    --@ rare.lua
    --@ call_up.lua
    --@ line_up.lua
    --@ shares.lua

    -- Ends what is held there under op: the code, and whether it was there just now.
    local function free(key, hold, op)
        local text = look(hold)
        if text and text:match(OP) == op then
            call('DEL', hold)
            return 1, true
        elseif call('GET', gone_key(key, op)) == 'released' then
            return 1
        end
        return text and -1 or 0
    end

    local function release(key, op, ticket, place, turn, part)
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
        local key, what = KEYS[i], ARGV[HEAD + i]
        local op, tomb, ticket, place, turn, part = what:match('^(%S+) (%d+),([^,]*),([^,]*),([^,]*),(.*)$')
        if not op then
            op, tomb, ticket, place, turn, part = what, '0', '-', 'keep', 'call', '-'
        end
        local code, line = release(key, op, ticket, place, turn, part)
        if tomb ~= '0' and code == 1 then
            bury(key, op, 'released', tomb)
            -- its broker hears of it, when it listens; it asks before it believes it
            local broker = op:match('^(.*)%.')
            if broker then
                call('PUBLISH', 'holdfast:wake:' .. broker, op .. ' ' .. key)
            end
        elseif tomb ~= '0' then
            bury(key, op, '', tomb, 'NX')
        end
        reply[2 * i + 1], reply[2 * i + 2] = code, line
    end
end
-- From now on no copy of an earlier call of this broker takes anything (see call.lua). At the end: a server whose memory
-- is full lets a script write only when it has deleted something.
if CALL - (call('HGET', 'holdfast:master', LAST) or 0) > 0 then
    call('HSET', 'holdfast:master', LAST, ARGV[2])
end
return reply or clock[1] .. ' ' .. clock[2] .. ' ' .. ARGV[2]
