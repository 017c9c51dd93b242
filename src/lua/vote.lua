-- vote: part of the scripts whose answer is a vote, or that create something. The text of each carries the id of
-- this run of the server, so that a restarted one does not know the script (safety R5).
local RUN_ID = '@RUN_ID@'
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Why nothing may be done, as an error; nil: it may. mark: run_id and state of holdfast:master.
local function refusal(mark)
    local deadline = tonumber(ARGV[1])
    if deadline and now > deadline then
        return redis.error_reply('LATE the request came after its deadline')
    end
    if mark[1] ~= RUN_ID then
        return redis.error_reply('STRANGER this server has lost its data')
    end
    if mark[2] ~= 'active' then
        return redis.error_reply('QUARANTINE this server may not vote yet')
    end
end
