// Lock libraries for Go, as their users write: what they say, on whatever server they are pointed at.
// usage: locks LIBRARY PORT
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	syncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/go-redsync/redsync/v4/redis/redigo"
	redigolib "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
)

var address string

func say(what string, outcome ...interface{}) {
	fmt.Printf("%s: %s\n", what, strings.TrimSpace(fmt.Sprintln(outcome...)))
}

// The kind of an error: its text may have values in it.
func kind(err error) string {
	var taken *redsync.ErrTaken
	switch {
	case err == nil:
		return "fine"
	case errors.As(err, &taken):
		return "taken"
	case errors.Is(err, redislock.ErrNotObtained):
		return "not obtained"
	case errors.Is(err, redislock.ErrLockNotHeld):
		return "not held"
	}
	return err.Error()
}

func goRedis() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: address})
}

func ofGoRedis() syncredis.Pool {
	return goredis.NewPool(goRedis())
}

func ofRedigo() syncredis.Pool {
	return redigo.NewPool(&redigolib.Pool{MaxIdle: 3, Dial: func() (redigolib.Conn, error) { return redigolib.Dial("tcp", address) }})
}

func contenders(lock func() func()) {
	var inside, together, count int64
	var all sync.WaitGroup
	for n := 0; n < 3; n++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := 0; i < 5; i++ {
				unlock := lock()
				if now := atomic.AddInt64(&inside, 1); now > atomic.LoadInt64(&together) {
					atomic.StoreInt64(&together, now)
				}
				seen := atomic.LoadInt64(&count)
				time.Sleep(2 * time.Millisecond)
				atomic.StoreInt64(&count, seen+1)
				atomic.AddInt64(&inside, -1)
				unlock()
			}
		}()
	}
	all.Wait()
	say("contenders", count, "rounds,", together, "at once")
}

func withRedsync(pool func() syncredis.Pool, prefix string) {
	a, b := redsync.New(pool()), redsync.New(pool())
	once, long := redsync.WithTries(1), redsync.WithExpiry(30*time.Second)
	first, second := a.NewMutex(prefix, long, once), b.NewMutex(prefix, long, once)
	say("take", kind(first.Lock()))
	say("refused", kind(second.Lock()))
	say("extend", fmt.Sprint(first.Extend()))
	say("valid", fmt.Sprint(first.Valid()))
	_, err := second.Unlock()
	say("release of another one's", err != nil)
	say("release", fmt.Sprint(first.Unlock()))
	ok, err := first.Unlock()
	say("release again", ok, err != nil)
	say("the other one", kind(second.Lock()))
	say("release", fmt.Sprint(second.Unlock()))
	odd := a.NewMutex(prefix+":odd", redsync.WithExpiry(1500*time.Millisecond), once)
	say("odd time", kind(odd.Lock()), kind(b.NewMutex(prefix+":odd", once).Lock()))
	short := a.NewMutex(prefix+":short", redsync.WithExpiry(300*time.Millisecond), once)
	say("short", kind(short.Lock()))
	patient := b.NewMutex(prefix+":short", long, redsync.WithTries(400), redsync.WithRetryDelay(20*time.Millisecond))
	say("after its end", kind(patient.Lock()))
	ok, err = short.Unlock()
	say("release of what has ended", ok, err != nil)
	ok, err = short.Extend()
	say("extend of what has ended", ok, err != nil)
	contenders(func() func() {
		held := redsync.New(pool()).NewMutex(prefix+":many", long, redsync.WithTries(2000), redsync.WithRetryDelay(10*time.Millisecond))
		if err := held.Lock(); err != nil {
			say("contender", err)
		}
		return func() { held.Unlock() }
	})
}

func withRedislock() {
	ctx := context.Background()
	a, b := redislock.New(goRedis()), redislock.New(goRedis())
	first, err := a.Obtain(ctx, "redislock", 30*time.Second, &redislock.Options{Metadata: "who"})
	say("take", kind(err), first.Metadata())
	_, err = b.Obtain(ctx, "redislock", 30*time.Second, nil)
	say("refused", kind(err))
	say("extend", kind(first.Refresh(ctx, 20*time.Second, nil)))
	left, err := first.TTL(ctx)
	say("its time", kind(err), left > 10*time.Second)
	again, err := b.Obtain(ctx, "redislock", 30*time.Second, &redislock.Options{Token: first.Token(), Metadata: "who"})
	say("by its token", kind(err), again != nil && again.Token() == first.Token())
	say("release", kind(first.Release(ctx)))
	say("release again", kind(first.Release(ctx)))
	say("extend of none", kind(first.Refresh(ctx, time.Second, nil)))
	short, err := a.Obtain(ctx, "redislock:short", 300*time.Millisecond, nil)
	say("short", kind(err))
	retry := &redislock.Options{RetryStrategy: redislock.LimitRetry(redislock.LinearBackoff(20*time.Millisecond), 400)}
	_, err = b.Obtain(ctx, "redislock:short", 30*time.Second, retry)
	say("after its end", kind(err))
	say("release of what has ended", kind(short.Release(ctx)))
	contenders(func() func() {
		retry := &redislock.Options{RetryStrategy: redislock.LimitRetry(redislock.LinearBackoff(10*time.Millisecond), 2000)}
		held, err := redislock.Obtain(ctx, goRedis(), "redislock:many", 30*time.Second, retry)
		if err != nil {
			say("contender", err)
		}
		return func() { held.Release(ctx) }
	})
}

func main() {
	address = "127.0.0.1:" + os.Args[2]
	switch os.Args[1] {
	case "redsync_goredis":
		withRedsync(ofGoRedis, "redsync")
	case "redsync_redigo":
		withRedsync(ofRedigo, "redigo")
	case "redislock":
		withRedislock()
	}
	fmt.Println("done")
}
