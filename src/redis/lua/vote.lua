-- vote: behind call.lua in the scripts whose answer is a vote: there is none in quarantine.
if state ~= 'active' then
    return redis.error_reply('QUARANTINE this server may not vote yet')
end
