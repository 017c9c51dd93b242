-- hold: part of the scripts that read or write holds. A hold is a string that people can read, and lives as long as its
-- lease:
--     op=<id> token=<n> count=<n> seq=<version> lease=<ms> end=<time, 0: never> taken=<1: by a take-over> owner=<any bytes>
-- count is how often it was entered, in version seq: "<token>.<number>", the token under which its owner was granted the
-- hold, and how often the count has been written since; "<token>" is number 0. So the versions of a hold are later than all
-- of those before it, however often those were entered. A drop-in hold that has been changed says in its version which hold
-- it is, as each change has an operation of its own: "<token>.<number>/<operation that took it>" (exchange.lua). end is when
-- its MAXHOLD ends, by this server's time in ms.
-- It is a string and not a hash because SET writes it, gives it its time to live and says who was there before, all in one
-- command.
local OP, SEQ = '^op=(%S+) ', '^op=(%S+) token=%d+ count=%d+ seq=(%S+) '
local ALL = '^op=(%S+) token=(%d+) count=(%d+) seq=(%S+) lease=(%d+) end=(%d+) taken=(%d) owner=(.*)$'

local function hold_text(op, token, count, seq, lease, ends, taken, owner)
    return 'op=' .. op .. ' token=' .. token .. ' count=' .. count .. ' seq=' .. seq .. ' lease=' .. lease
        .. ' end=' .. ends .. ' taken=' .. taken .. ' owner=' .. owner
end

-- Returns the text under a key, '' for a value that is no string, nil for none.
local function look(hold)
    local text = redis.pcall('GET', hold)
    return type(text) == 'table' and '' or text or nil
end

-- Returns the fields of the hold under a key, nil when nothing is there. What is no hold has no field `op`.
local function read(hold)
    local text = look(hold)
    if text then
        local h = {}
        h.op, h.token, h.count, h.seq, h.lease, h.ends, h.taken, h.owner = text:match(ALL)
        return h
    end
end

-- Returns token and number of a version of a count. Of two versions the one that is greater by these is the later one.
local function version(seq)
    local token, number = seq:match('^(%d+)%.?(%d*)')
    return tonumber(token), tonumber(number) or 0
end

-- Writes a hold.  ...: 'PX', ms or 'KEEPTTL'
local function write(hold, h, ...)
    redis.call('SET', hold, hold_text(h.op, h.token, h.count, h.seq, h.lease, h.ends, h.taken, h.owner), ...)
end
