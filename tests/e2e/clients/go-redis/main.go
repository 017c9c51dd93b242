// go-redis 9 with its defaults (RESP3, a pool, retries): one session of locking; and find.go.
// usage: clients PORT; clients find NAME PORT PORT
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

func must(what string, ok bool, got ...any) {
	if !ok {
		fmt.Println(append([]any{"wrong:", what}, got...)...)
		os.Exit(1)
	}
}

func grant(c *redis.Client, args ...any) int64 {
	reply, err := c.Do(ctx, args...).Slice()
	must(fmt.Sprint(args...), err == nil && len(reply) == 2, reply, err)
	token, ok := reply[0].(int64)
	must("a token", ok && token > 0, reply)
	return token
}

func number(want int64, c *redis.Client, args ...any) {
	reply, err := c.Do(ctx, args...).Int64()
	must(fmt.Sprint(args...), err == nil && reply == want, reply, err)
}

func refused(code string, err error) {
	must(code, err != nil && strings.HasPrefix(err.Error(), code), err)
}

func echo(c *redis.Client) {
	reply, err := c.Echo(ctx, "x").Result()
	must("echo", err == nil && reply == "x", reply, err)
}

func main() {
	if os.Args[1] == "find" {
		find(os.Args[2], os.Args[3:])
	}
	connect := func() *redis.Client { return redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1]}) }
	holder, rival := connect(), connect()

	// held by another, and given back
	grant(holder, "LOCK", "go")
	must("what is held by another", errors.Is(rival.Do(ctx, "LOCK", "go").Err(), redis.Nil))
	refused("HELD 'go' is held by this connection already", holder.Do(ctx, "LOCK", "go").Err())
	number(1, holder, "UNLOCK", "go")
	refused("NOTHELD", holder.Do(ctx, "UNLOCK", "go").Err())

	// entered again by name, and sent again
	token := grant(holder, "LOCK", "go:again", "OWNER", "app")
	for _, id := range []string{"1", "2", "2"} {
		must("the same token", token == grant(holder, "LOCK", "go:again", "OWNER", "app", "ID", id))
	}
	number(3, rival, "HOLDS", "go:again", "OWNER", "app")

	// lost: nothing comes that was not asked for
	connection := holder.ClientID(ctx).Val()
	grant(holder, "LOCK", "go:lost")
	number(1, rival, "FORCEUNLOCK", "go:lost")
	grant(rival, "LOCK", "go:lost", "WAIT", 5000)
	reply, err := holder.Do(ctx, "LOCK", "go:lost").Result()
	must("what was lost", errors.Is(err, redis.Nil), reply, err)
	echo(holder)
	must("the same connection, and its locks", holder.ClientID(ctx).Val() == connection)
	number(3, rival, "HOLDS", "go:again", "OWNER", "app")

	// a transaction: nothing of it is run
	_, err = holder.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Do(ctx, "LOCK", "go:multi")
		return nil
	})
	refused("EXECABORT nothing of this transaction was run", err)
	echo(holder)
	grant(rival, "LOCK", "go:multi")
	fmt.Println("ok")
}
