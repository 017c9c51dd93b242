-- vote: part of the scripts whose answer is a vote, behind call.lua. Refuses the call in quarantine.
if state ~= 'active' then
    return redis.error_reply('QUARANTINE this server may not vote yet')
end
