-- renew: extends holds, and writes how often each has been entered. It never creates a hold.
--
-- KEYS   one lock an item
-- ARGV   deadline call broker; then an item: what lease
--          what    op: an exclusive hold, of whose count there is nothing to say. Or op, a blank, and all of these, with
--                  commas between them:
--          count   the absolute count, from the one broker that has the hold; seq: its version (hold.lua),
--                  written only when later than what is there
--          part    as in release.lua
--          lease   ms from now; 0: the time to live stays. Shortens it only with a newer seq: a late copy must not
-- Reply  in brief (call.lua): each item 1; or {time, call, code, ...}:
--          1 held under op   0 not there   -1 there under another operation
--         -2 its owner has taken it over under another operation
-- Twice  the same again changes nothing but the time to live.
--@ call.lua
--@ vote.lua
local HEAD, WIDTH, OPERATION = 3, 2, '^op=(%S+) ' -- the last as in hold.lua, which the usual way does without

-- All that is not usual: made when it is needed.
local function special()
    --@ hold.lua
    --@ rare.lua
    --@ shares.lua
    local function is_later(seq, its)
        local token, number = version(seq)
        local its_token, its_number = version(its)
        return token > its_token or (token == its_token and number > its_number)
    end

    local function renew(hold, lease, count, seq, newer)
        if newer then
            local held = read(hold)
            held.count, held.seq = count, seq
            if lease == '0' then
                write(hold, held, 'KEEPTTL')
            else
                write(hold, held, 'PX', lease)
            end
            return lease ~= '0'
        end
        return lease ~= '0' and call('PEXPIRE', hold, lease, 'GT') == 1
    end

    return function(key, what, lease)
        local op, count, seq, part = what:match('^(%S+) (%d+),([%d.]+),(.*)$')
        if not op then
            op, part = what, '-'
        end
        local hold = hold_key(key, part)
        local text = look(hold)
        local held, its
        if text then
            held, its = text:match(SEQ)
        end
        if held == op then
            local newer = seq and its ~= seq and is_later(seq, its)
            if renew(hold, lease, count, seq, newer) and part ~= '-' then
                enter_share(key, part, read(hold).owner, lease, newer)
            end
            return 1
        elseif held then
            return call('GET', key .. ':gone:' .. op) == 'moved' and -2 or -1
        end
        return 0
    end
end

local texts, serve = call('MGET', unpack(KEYS)), nil
local reply, all = {now, CALL}, true
for i = 1, #KEYS do
    local text, what, lease = texts[i], ARGV[HEAD + WIDTH * i - 1], ARGV[HEAD + WIDTH * i]
    local code = 1
    if not text or text:match(OPERATION) ~= what then
        serve = serve or special()
        code = serve(KEYS[i], what, lease)
    else -- GT: never shorter, and not by 0 either
        call('PEXPIRE', KEYS[i], lease, 'GT')
    end
    reply[i + 2], all = code, all and code == 1
end
return all and BRIEF or reply
