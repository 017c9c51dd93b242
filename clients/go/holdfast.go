// Package holdfast takes locks from holdfastd, a lock broker that speaks the Redis protocol.
//
//	client, err := holdfast.New(holdfast.Options{Brokers: []string{"broker-a:5625", "broker-b:5625"}})
//	...
//	lock, err := client.Lock(ctx, "invoice:42")
//	if err != nil {
//		return err
//	}
//	defer lock.Unlock()
//	return pay(lock.Context(), lock.Token())
//
// A process needs one Client, whatever the number of its locks: they share one connection for requests and one that
// listens. Each Lock is an owner of its own, so goroutines exclude each other, and none enters a lock twice unless Owner
// says so.
//
// The context of a lock ends when the lock does, and [context.Cause] says why. It ends before the time is over that the
// broker has promised, counted by the monotonic clock from before the request was sent. When the connection or the broker
// is lost the client takes its locks back, with the next broker of the list if need be; meanwhile they are in jeopardy.
//
// No lock can stop a process that was paused at the wrong moment: give Token to what the lock protects, and let that
// refuse smaller ones.
package holdfast

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	retryMin = 20 * time.Millisecond
	retryMax = time.Second
)

// Client is one process's access to its brokers. Its methods may be called from any goroutine.
type Client struct {
	options Options
	id      string // begins its owners
	count   atomic.Uint64
	ctx     context.Context // until Close
	close   context.CancelFunc
	closed  chan struct{} // nothing is connected any more

	mu      sync.Mutex
	session *session                      // nil while there is none
	changed chan struct{}                 // closed when there is one, or the last try has failed
	reason  error                         // of the last failure to connect
	holds   map[string]map[*Lock]struct{} // by name
}

// New makes a client, which connects by itself and goes on trying to. It fails only when the options are wrong.
func New(options Options) (*Client, error) {
	if len(options.Brokers) == 0 {
		options.Brokers = []string{"127.0.0.1:5625"}
	}
	if options.Service == "" {
		options.Service = "holdfast"
	}
	if options.Timeout <= 0 {
		options.Timeout = 3 * time.Second
	}
	if options.Name == "" {
		host, _ := os.Hostname()
		options.Name = host + ":" + strconv.Itoa(os.Getpid())
	}
	if len(options.Name) > 200 || len(options.TagPrefix) > 24 || strings.ContainsAny(options.TagPrefix, "*?[]\\") {
		return nil, fmt.Errorf("holdfast: Name is at most 200 bytes, TagPrefix 24 without * ? [ ] \\")
	}
	c := &Client{options: options, id: options.Name + ":" + random() + ":", closed: make(chan struct{}),
		changed: make(chan struct{}), holds: map[string]map[*Lock]struct{}{}}
	c.ctx, c.close = context.WithCancel(context.Background())
	go c.run()
	return c, nil
}

// Close gives all locks back but those with a Lease, and ends their contexts.
func (c *Client) Close() {
	c.finish()
	c.close()
	<-c.closed
	c.finish()
}

func (c *Client) finish() {
	c.mu.Lock()
	var all []*Lock
	for _, locks := range c.holds {
		for l := range locks {
			all = append(all, l)
		}
	}
	c.mu.Unlock()
	for _, l := range all {
		l.finish(ErrClosed)
	}
}

// lost takes what the broker tells of any lock: "name token reason".
func (c *Client) lost(payload string) {
	words := strings.Split(payload, " ")
	n := len(words)
	if n < 3 || words[n-1] == "moved" { // that was a RENEW of its own
		return
	}
	name := strings.Join(words[:n-2], " ")
	c.mu.Lock()
	var told []*Lock
	for l := range c.holds[name] {
		told = append(told, l)
	}
	c.mu.Unlock()
	for _, l := range told {
		i := slices.Index(l.names, name)
		if strconv.FormatInt(l.Tokens()[i], 10) == words[n-2] {
			l.finish(l.lost(i, words[n-1]))
		}
	}
}

// random is what nobody guesses.
func random() string {
	bytes := make([]byte, 12)
	if _, err := rand.Read(bytes); err != nil {
		panic(err)
	}
	return hex.EncodeToString(bytes)
}

// run keeps a session, at one broker after the other.
func (c *Client) run() {
	defer close(c.closed)
	pause := retryMin
	for next := 0; c.ctx.Err() == nil; next++ {
		s, err := c.connect(c.options.Brokers[next%len(c.options.Brokers)])
		c.announce(s, err)
		if err == nil {
			since := time.Now()
			s.serve()
			c.announce(nil, errBroken)
			if time.Since(since) > retryMax {
				pause = retryMin
			}
		}
		select {
		case <-time.After(pause):
		case <-c.ctx.Done():
		}
		pause = min(2*pause, retryMax)
	}
}

func (c *Client) announce(s *session, reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.reason = s, reason
	close(c.changed)
	c.changed = make(chan struct{})
}

// current waits for a session.
func (c *Client) current(ctx context.Context) (*session, error) {
	for {
		c.mu.Lock()
		s, changed, reason := c.session, c.changed, c.reason
		c.mu.Unlock()
		select {
		case <-c.ctx.Done():
			return nil, ErrClosed
		default:
		}
		if s != nil {
			select {
			case <-s.over:
			default:
				return s, nil
			}
		}
		select {
		case <-changed:
		case <-c.ctx.Done():
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %v; %w", ErrNoBroker, reason, ctx.Err())
		}
	}
}
