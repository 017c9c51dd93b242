-- renew_general: part of renew.lua: returns a function that renews any hold: the code.
--@ hold.lua
--@ rare.lua
--@ shares.lua
local WHAT = '^(%S+) count=(%d+) seq=([%d.]+) part=(.*)$'

-- Writes the count of a hold and its lease. Returns the lease: without `exactly` no less than what is left, which the broker
-- that has taken the hold over may not know of (safety R18).
local function recount(hold, held, lease, exactly, count, seq)
    held.count, held.seq = count, seq
    if lease == '0' then
        write(hold, held, 'KEEPTTL')
        return lease
    elseif not exactly then
        lease = string.format('%.0f', math.max(tonumber(lease), call('PTTL', hold)))
    end
    write(hold, held, 'PX', lease)
    return lease
end

--@ later.lua
local function renew(key, what, lease)
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
    local exactly = lease:match('^=(%d+)$')
    lease = exactly or lease
    local lasts = lease ~= '0'
    if newer then
        lease = recount(hold, held, lease, exactly, count, seq)
    elseif lasts then
        lasts = call('PEXPIRE', hold, lease, 'GT') == 1
    end
    if lasts and part ~= '-' then
        enter_share(key, part, held.owner, lease, newer)
    end
    return RENEW_HELD
end

if state == 'active' then
    return renew
end

-- In quarantine (safety R14): from when on what was planted in this life counts. By then no claim is undecided any more
-- (claim_timeout, which all brokers share) for which this server may have voted before it forgot; nor does a broker that is cut
-- off together with the server that was the master before use that one any more (sentinel_timeout, R17).
local PLANTED = 'holdfast:planted'
local since, settings = call('HGET', PLANTED, 'since'), call('HGET', 'holdfast:master', 'settings') or ''
local claim_ms, drift = settings:match('claim_timeout=(%d+)'), settings:match('drift=(%d+)')
local named_ms = settings:match('sentinel_timeout=(%d+)') or 0
local wait_ms = claim_ms and claim_ms + named_ms
local in_cluster = settings:match(' partitions=') -- where no time is enough: only the roll call
local counts = not in_cluster and since and drift and wait_ms and now - since > wait_ms + wait_ms * drift / 1000000 + 2

return function(key, what, lease)
    local op, _, _, part = what:match(WHAT)
    local hold = hold_key(key, part or '-')
    local planted, over = unpack(call('HMGET', PLANTED, hold, 'over:' .. hold))
    local held = read(hold)
    if not since or planted ~= (op or what) or over and held and tonumber(held.token or 0) <= tonumber(over) then
        return RENEW_FORGOTTEN
    elseif renew(key, what, lease) ~= RENEW_HELD then
        return RENEW_FORGOTTEN
    end
    return counts and RENEW_PLANTED or RENEW_EARLY
end
