package main

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// find holds a lock by go-redis in its Sentinel mode and says at which broker.
func find(name string, ports []string) {
	options := &redis.FailoverOptions{MasterName: "holdfast", MaxRetries: -1,
		DialTimeout: time.Second, ReadTimeout: time.Second}
	for _, port := range ports {
		options.SentinelAddrs = append(options.SentinelAddrs, "127.0.0.1:"+port)
	}
	client := redis.NewFailoverClient(options)
	client.Do(ctx, "LOCK", name, "OWNER", "app", "LEASE", 30000)
	for {
		// without a reply, or a good one, it is asked again
		if client.Do(ctx, "RENEW", name, "OWNER", "app", "LEASE", 30000).Err() == nil {
			if announce, err := client.ConfigGet(ctx, "announce").Result(); err == nil {
				fmt.Println(announce["announce"])
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}
