-- mirror_end: part of the scripts that begin with mirror.lua: makes the plain keys of all items what they are to be, for as long
-- as what stands here, to the same millisecond; but for those that are somebody else's.
for i = 1, #KEYS do
    local p = plain[i]
    if p.name and not p.foreign then
        local hold, till = call('MGET', p.key)[1], shared_till(p.key)
        local value, list = shown(hold)
        if till > 0 then
            value, list = SHARED, nil
        end
        if value or list then
            till = string.format('%.0f', math.max(till, hold and call('PEXPIRETIME', p.key) or 0))
        end
        if value and value == p.text or list and hold == p.hold and p.is_there then
            plain_call(p, 'PEXPIREAT', p.name, till)
        elseif value then
            plain_call(p, 'SET', p.name, value, 'PXAT', till)
        elseif p.is_there then
            plain_call(p, 'DEL', p.name)
        end
        if list and not (hold == p.hold and p.is_there) then
            plain_call(p, 'HSET', p.name, unpack(list))
            plain_call(p, 'PEXPIREAT', p.name, till)
        end
    end
end
