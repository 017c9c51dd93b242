"""redis-py in its Sentinel mode: holds a lock and says at which broker. usage: find-redis-py.py NAME PORT PORT"""

import sys
import time

import redis
from redis.sentinel import Sentinel

name, ports = sys.argv[1], sys.argv[2:]
sentinel = Sentinel([("127.0.0.1", int(port)) for port in ports], socket_timeout=1)
client = sentinel.master_for("holdfast", socket_timeout=1, decode_responses=True)
client.execute_command("LOCK", name, "OWNER", "app", "LEASE", 30000)
while True:
    try:
        client.execute_command("RENEW", name, "OWNER", "app", "LEASE", 30000)
        print(client.config_get("announce")["announce"], flush=True)
    except redis.RedisError:
        pass    # no reply, or none that is good, yet
    time.sleep(0.1)
