-- line_up: part of the scripts that let somebody wait. Puts a ticket into the line of a lock. place: "tail" behind all
-- others, "front" before them; "keep" leaves the ticket where it stands.
local LINE_MS = 60000 -- a line that nobody renews is forgotten

local function line_up(key, ticket, place)
    if place == 'front' then
        redis.call('LPUSH', key .. ':line', ticket)
    elseif place == 'tail' then
        redis.call('RPUSH', key .. ':line', ticket)
    end
    redis.call('PEXPIRE', key .. ':line', LINE_MS)
end
