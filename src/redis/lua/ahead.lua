-- ahead: part of the scripts that are asked for a token, behind vote.lua. Lua counts to 2^53; so that the counters never get
-- there, nobody may ask for one that is near it, as a broker with a clock beyond the year 2248 would.
local MOST_ASKED = 9006099743113216 -- 2^53 less 2^40, which leaves room to count on
local AHEAD = 'AHEAD no year can be that late: set the clock of this broker right'
