-- ahead: part of the scripts that are asked for a token, behind vote.lua. Bounds the floor that a broker may ask for: Lua
-- counts to 2^53, and a broker whose clock is beyond the year 2248 would bring the counters near it.
local MOST_ASKED = 9006099743113216 -- 2^53 less 2^40, which leaves room to count on
local AHEAD = 'AHEAD no year can be that late: set the clock of this broker right'
