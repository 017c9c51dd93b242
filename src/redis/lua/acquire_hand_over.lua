-- acquire_hand_over: part of acquire.lua: serves item i when it takes a lock as a whole from `prev`, and wants nothing else.
-- acquire_general.lua does the same and takes a third more of the server's time; all that wait for a lock wait for this.
local lease, prev, ticket = wish:match(
    '^lease=(%d+) prev=(%S+) tomb=0 ticket=([^/ ]+) place=%S+ judge=%S+ maxhold=0 mode=x group=%-$')
local held = prev and prev ~= '-' and pcall('GET', KEYS[i])
if type(held) == 'string' and held:match('^op=(%S+) ') == prev then
    call('SET', KEYS[i], hold, 'PX', lease)
    code, taken, line = ACQUIRE_TAKEN, true, call('LLEN', KEYS[i] .. ':line')
    if names then
        count(i, hold)
    end
    if line > 0 and ticket ~= '-' then
        line = line - call('LREM', KEYS[i] .. ':line', 0, ticket)
    end
end
