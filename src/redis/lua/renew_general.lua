-- renew_general: part of renew.lua: returns a function that renews any hold: the code.
--@ hold.lua
--@ rare.lua
--@ shares.lua
local WHAT = '^(%S+) count=(%d+) seq=([%d.]+) part=(.*)$'

-- Writes the count of a hold and its lease.
local function recount(hold, held, lease, count, seq)
    held.count, held.seq = count, seq
    if lease == '0' then
        write(hold, held, 'KEEPTTL')
    else
        write(hold, held, 'PX', lease)
    end
end

local function is_later(seq, other)
    local token, number = version(seq)
    local other_token, other_number = version(other)
    return token > other_token or token == other_token and number > other_number
end

return function(key, what, lease)
    local op, count, seq, part = what:match(WHAT)
    if not op then
        op, part = what, '-'
    end
    local hold = hold_key(key, part)
    local text = look(hold)
    local held_op, held_seq = (text or ''):match(SEQ)
    if not held_op then
        return RENEW_MISSING
    elseif held_op ~= op then
        return call('GET', key .. ':gone:' .. op) == 'moved' and RENEW_MOVED or RENEW_OTHER
    end
    local held = read(hold)
    local newer = seq and held_seq ~= seq and is_later(seq, held_seq)
    local lasts = lease ~= '0'
    if newer then
        recount(hold, held, lease, count, seq)
    elseif lasts then
        lasts = call('PEXPIRE', hold, lease, 'GT') == 1
    end
    if lasts and part ~= '-' then
        enter_share(key, part, held.owner, lease, newer)
    end
    return RENEW_HELD
end
