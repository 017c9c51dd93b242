// Command agent takes part in the scenarios that all client packages are held to: see clients/scenarios.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"holdfast.example/holdfast"
)

type command struct {
	Do        string
	Brokers   []string
	Timeout   int64
	Hold      string
	Name      string
	Names     []string
	Wait      *int64
	Lease     int64
	MaxHold   int64 `json:"max_hold"`
	Shared    bool
	Limit     int
	Fair      bool
	Reentrant bool
}

type event map[string]any

var (
	mu      sync.Mutex
	client  *holdfast.Client
	locks   = map[string]*holdfast.Lock{}
	cancels = map[string]context.CancelFunc{}
)

func write(name, hold string, more event) {
	mu.Lock()
	defer mu.Unlock()
	line := event{"event": name}
	if hold != "" {
		line["hold"] = hold
	}
	for key, value := range more {
		line[key] = value
	}
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func lock(ctx context.Context, c command) {
	options := []holdfast.Option{holdfast.And(c.Names[1:]...)}
	for _, one := range []struct {
		given  bool
		option holdfast.Option
	}{
		{c.Lease > 0, holdfast.Lease(ms(c.Lease))}, {c.MaxHold > 0, holdfast.MaxHold(ms(c.MaxHold))},
		{c.Shared, holdfast.Shared()}, {c.Limit > 0, holdfast.Limit(c.Limit)}, {c.Fair, holdfast.Fair()},
	} {
		if one.given {
			options = append(options, one.option)
		}
	}
	take := client.Lock
	if c.Wait != nil && *c.Wait == 0 {
		take = client.TryLock
	} else if c.Wait != nil {
		options = append(options, holdfast.Wait(ms(*c.Wait)))
	}
	l, err := take(ctx, c.Names[0], options...)
	switch {
	case errors.Is(err, holdfast.ErrNotGranted):
		write("timeout", c.Hold, nil)
	case errors.Is(err, context.Canceled):
		write("cancelled", c.Hold, nil)
	case err != nil:
		write("error", c.Hold, event{"text": strings.TrimPrefix(err.Error(), "holdfast: ")})
	default:
		mu.Lock()
		locks[c.Hold] = l
		cancels[c.Hold] = func() {} // it waits no more
		mu.Unlock()
		write("granted", c.Hold, event{"tokens": l.Tokens()})
		watch(c.Hold, l)
	}
}

// watch writes what the package tells of a lock until it ends.
func watch(hold string, l *holdfast.Lock) {
	for {
		select {
		case bad := <-l.Jeopardy():
			write(map[bool]string{true: "jeopardy", false: "safe"}[bad], hold, nil)
		case <-l.Context().Done():
			if lost := (*holdfast.LostError)(nil); errors.As(context.Cause(l.Context()), &lost) {
				write("lost", hold, event{"text": lost.Reason})
			}
			return
		}
	}
}

func unlock(hold string, l *holdfast.Lock) {
	if err := l.Unlock(); errors.Is(err, holdfast.ErrLost) {
		write("notheld", hold, nil)
	} else if err != nil {
		write("error", hold, event{"text": err.Error()})
	} else {
		write("released", hold, nil)
	}
}

func state(hold string, l *holdfast.Lock) {
	if l == nil {
		write("state", hold, event{"held": false, "tokens": []int64{}, "remaining": 0})
		return
	}
	held := l.Err() == nil
	write("state", hold, event{"held": held, "tokens": l.Tokens(), "remaining": time.Until(l.Deadline()).Milliseconds()})
}

// nested takes a lock twice, by one owner when it is to be entered again.
func nested(c command) {
	var options []holdfast.Option
	if c.Reentrant {
		options = append(options, holdfast.Owner("agent:nested"))
	}
	outer, err := client.Lock(context.Background(), c.Name, options...)
	if err != nil {
		write("error", c.Hold, event{"text": err.Error()})
		return
	}
	inner, err := client.TryLock(context.Background(), c.Name, options...)
	entered := err == nil && inner.Unlock() == nil && outer.Err() == nil
	if outer.Unlock() != nil {
		entered = false
	}
	write(map[bool]string{true: "entered", false: "refused"}[entered], c.Hold, nil)
}

func obey(c command) {
	mu.Lock()
	l := locks[c.Hold]
	mu.Unlock()
	switch c.Do {
	case "connect":
		options := holdfast.Options{Timeout: ms(c.Timeout)}
		for _, url := range c.Brokers {
			options.Brokers = append(options.Brokers, strings.TrimPrefix(url, "redis://"))
		}
		var err error
		if client, err = holdfast.New(options); err != nil {
			write("error", "", event{"text": err.Error()})
			return
		}
		write("connected", "", nil)
	case "lock":
		ctx, cancel := context.WithCancel(context.Background())
		mu.Lock()
		cancels[c.Hold] = cancel
		mu.Unlock()
		go lock(ctx, c)
	case "cancel":
		mu.Lock()
		cancel := cancels[c.Hold]
		mu.Unlock()
		cancel()
	case "unlock":
		go unlock(c.Hold, l)
	case "state":
		go state(c.Hold, l)
	case "nested":
		go nested(c)
	case "close":
		go func() {
			client.Close()
			write("closed", "", nil)
		}()
	}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var c command
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		obey(c)
	}
}
