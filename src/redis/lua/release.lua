-- release: ends holds; also the undo of an acquire. Goes by the operation, never by the owner alone: it ends what that very
-- operation took and nothing else. Always allowed, also late and in quarantine.
--
-- KEYS   one lock an item; an operation comes once in a call
-- ARGV   (unused) call broker; then an item: what
--          what    op: an exclusive hold of an operation of this broker; the first ticket in the line is called up. Or op,
--                  and all of these, as WHAT below has them:
--            tomb    ms for which op, of another broker, is remembered as gone, so that a late copy of the request that
--                    creates it finds the way shut, and a repeat of this release gets the same answer; its broker is told.
--                    0: op is of this broker
--            ticket  of a request that lets others go first, or that had the lock for a moment only; "-": none
--            place   where the ticket lines up (line_up.lua)
--            next    "call": the first ticket in the line is called up; "wait": the broker sees to that, once the other
--                    servers know too (pass.lua)
--            part    of the lock (shares.lua)
-- Reply  in brief (call.lua): each item RELEASE_ENDED 0. Or {time, call, code, line, ...}:
--          RELEASE_ENDED     it was there, or is remembered as released
--          RELEASE_MISSING   nothing was there
--          RELEASE_OTHER     held under another operation
--          line   with "wait", how many tickets stand in the line, of which one may be called up
-- Twice  the same answer, as long as it is remembered
local HEAD, OPERATION = 3, '^op=(%S+) ' -- the latter as in hold.lua, which the usual way does without
local KEYS, ARGV, n, match = KEYS, ARGV, #KEYS, string.match
local CALL, LAST = ARGV[2] + 0, 'last:' .. ARGV[3]
--@ now.lua
--@ mirror mirror.lua
local reply

-- The usual: exclusive holds that are all there. One command then asks about all of them, and no functions are made, because
-- to make them takes longer than to serve a lock.
local texts, lines, usual = call('MGET', unpack(KEYS)), {}, true
for i = 1, n do
    local text = texts[i]
    usual = usual and text and match(text, OPERATION) == ARGV[HEAD + i]
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
    local WHAT = '^(%S+) tomb=(%d+) ticket=(%S+) place=(%S+) next=(%S+) part=(.*)$'
    --@ hold.lua
    --@ rare.lua
    --@ call_up.lua
    --@ line_up.lua
    --@ shares.lua
    --@ codes release

    -- Ends what is held there under op. Returns the code, and whether it was there until now.
    local function free(key, hold, op)
        local text = look(hold)
        if text and text:match(OP) == op then
            call('DEL', hold)
            return RELEASE_ENDED, true
        elseif call('GET', gone_key(key, op)) == 'released' then
            return RELEASE_ENDED
        end
        return text and RELEASE_OTHER or RELEASE_MISSING
    end

    -- Remembers that op is gone. Its broker hears of it, when it listens; it asks before it believes it.
    local function remember(key, op, code, tomb)
        if code ~= RELEASE_ENDED then
            bury(key, op, '', tomb, 'NX')
            return
        end
        bury(key, op, 'released', tomb)
        local broker = op:match('^(.*)%.')
        if broker then
            call('PUBLISH', 'holdfast:wake:' .. broker, op .. ' ' .. key)
        end
    end

    -- Among readers the last one makes room; the last but one does for a reader who waits to have the lock alone.
    local function makes_room(key, part)
        if not is_reader(part) then
            return true
        end
        local live = shares(key)
        return (live == 0 or live == 1 and call('EXISTS', key .. ':upgrade') == 1) and call('EXISTS', key) == 0
    end

    -- Returns code and line.
    local function release(key, op, ticket, place, turn, part)
        forget_permit(key, part, op)
        local code, was_there = free(key, hold_key(key, part), op)
        if was_there and part ~= '-' then
            call('ZREM', key .. ':shares', part)
        end
        if was_there and ticket ~= '-' then
            line_up(key, ticket, place)
        end
        local room = makes_room(key, part)
        if turn ~= 'call' then
            return code, room and call('LLEN', key .. ':line') or 0
        elseif was_there and room then
            call_up(key)
        end
        return code, 0
    end

    for i = 1, n do
        local key, what = KEYS[i], ARGV[HEAD + i]
        local op, tomb, ticket, place, turn, part = what:match(WHAT)
        if not op then
            op, tomb, ticket, place, turn, part = what, '0', '-', 'keep', 'call', '-'
        end
        local code, line = release(key, op, ticket, place, turn, part)
        if tomb ~= '0' then
            remember(key, op, code, tomb)
        end
        reply[2 * i + 1], reply[2 * i + 2] = code, line
    end
end
--@ mirror mirror_end.lua
-- From now on no copy of an earlier call of this broker takes anything (call.lua). Comes last: a server whose memory is full
-- lets a script write only when it has deleted something.
if CALL - (call('HGET', 'holdfast:master', LAST) or 0) > 0 then
    call('HSET', 'holdfast:master', LAST, ARGV[2])
end
return reply or clock[1] .. ' ' .. clock[2] .. ' ' .. ARGV[2]
