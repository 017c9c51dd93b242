-- now: part of most scripts: the time of this server in ms.
local call = redis.call -- locals are found faster
local clock = call('TIME')
local now = clock[1] * 1000 + clock[2] / 1000
now = now - now % 1
