package holdfast

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"
)

// Lock is a lock that is held until Unlock, or until it is lost.
type Lock struct {
	client   *Client
	names    []string
	owner    string
	named    bool // the owner, by the caller: others may have entered it too
	watched  bool
	ctx      context.Context
	cancel   context.CancelCauseFunc
	jeopardy chan bool
	alive    context.Context // until it has ended
	stop     context.CancelFunc

	mu       sync.Mutex
	tokens   []int64 // of the names
	deadline time.Time
	expiry   *time.Timer
	troubled bool
	end      error // why it has ended
}

// Lock waits for a lock until it is granted or ctx ends. The context of the lock comes from ctx: where only the wait is
// to be bounded, say Wait. A wait goes on at the next broker when one is lost.
func (c *Client) Lock(ctx context.Context, name string, options ...Option) (*Lock, error) {
	return c.acquire(ctx, name, &request{waits: true, watched: true}, options)
}

// TryLock takes a lock if it is free, and gives ErrNotGranted if not.
func (c *Client) TryLock(ctx context.Context, name string, options ...Option) (*Lock, error) {
	return c.acquire(ctx, name, &request{watched: true}, options)
}

func (c *Client) acquire(ctx context.Context, name string, r *request, options []Option) (*Lock, error) {
	r.names = []string{name}
	for _, option := range options {
		option(r)
	}
	l := &Lock{client: c, names: r.names, owner: r.owner, named: r.owner != "", watched: r.watched,
		jeopardy: make(chan bool, 1)}
	if !l.named {
		l.owner = c.id + strconv.FormatUint(c.count.Add(1), 10)
	}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.alive, l.stop = context.WithCancel(context.Background())
	since, id := time.Now(), random() // however often it is sent it counts once
	reach, cancel := ctx, func() {}
	if !r.waits {
		reach, cancel = context.WithTimeout(ctx, 2*c.options.Timeout)
	} else if r.wait > 0 {
		reach, cancel = context.WithTimeout(ctx, r.wait)
	}
	defer cancel()
	for {
		var s *session
		err := ctx.Err()
		if err == nil {
			s, err = c.current(reach)
		}
		if err == nil {
			err = s.ask(ctx, l, r.line(l.owner, id, since))
		}
		if err == nil {
			if err = l.Err(); err != nil {
				go l.giveBack() // lost before anybody has it
			}
		}
		switch refused, _ := err.(Error); {
		case err == nil:
			return l, nil
		case err == errBroken:
		case refused.Code() == "DRAINING" && len(c.options.Brokers) > 1:
			s.fail()
		default:
			l.cancel(err)
			l.stop()
			return nil, err
		}
	}
}

// line is the command, with what is left of the time to wait.
func (r *request) line(owner, id string, since time.Time) []any {
	line := []any{"LOCK"}
	if len(r.names) > 1 {
		line = []any{"MLOCK", len(r.names)}
	}
	for _, name := range r.names {
		line = append(line, name)
	}
	line = append(append(line, "OWNER", owner, "ID", id), r.words...)
	if r.waits && r.wait == 0 {
		line = append(line, "WAIT", 0)
	} else if r.waits {
		line = append(line, "WAIT", max(1, (r.wait-time.Since(since)).Milliseconds()))
	}
	return line
}

// Names are what is locked: one, or more with And.
func (l *Lock) Names() []string { return l.names }

// Owner is who holds it, as LOCKINFO shows it.
func (l *Lock) Owner() string { return l.owner }

// Context ends with the lock; context.Cause says why: ErrReleased, ErrClosed, a LostError, or the cause of its parent.
func (l *Lock) Context() context.Context { return l.ctx }

// Jeopardy tells true when a renewal has failed, and false when the lock is safe again.
// Only the last word is kept for who does not listen.
func (l *Lock) Jeopardy() <-chan bool { return l.jeopardy }

// Token is the fencing token. It grows when the lock is taken back after its connection was lost: ask for it each time.
func (l *Lock) Token() int64 { return l.Tokens()[0] }

// Tokens are those of all names.
func (l *Lock) Tokens() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tokens
}

// Err is nil while the lock may be relied on by the clock, and why not when it has ended.
func (l *Lock) Err() error {
	if !time.Now().Before(l.Deadline()) {
		l.finish(l.lost(0, "expired"))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// Deadline is until when the lock is promised by now; that of a watched lock goes on. The context ends before it.
func (l *Lock) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline
}

// Unlock gives the lock back, and ends its context before that. A LostError tells that it was lost before, ErrReleased
// that it was given back already. Other errors tell that the broker could not be told; the lock is then free when its
// lease ends, as nobody renews it any more.
func (l *Lock) Unlock() error {
	switch before := l.finish(ErrReleased); {
	case before == nil:
		return l.giveBack()
	case errors.Is(before, ErrLost):
		go l.giveBack() // the broker may still renew it
		return before
	default:
		return before
	}
}

func (l *Lock) giveBack() error {
	var first error
	for i := range l.names {
		if err := l.giveBackOne(i); first == nil {
			first = err
		}
	}
	return first
}

func (l *Lock) giveBackOne(i int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*l.client.options.Timeout)
	defer cancel()
	for again := false; ; again = true {
		s, err := l.client.current(ctx)
		if err != nil {
			return fmt.Errorf("holdfast: '%s' is not given back: %w", l.names[i], err)
		}
		reply, err := s.do("UNLOCK", l.names[i], "OWNER", l.owner)
		switch refused, _ := err.(Error); {
		case err == errBroken && l.named:
			return fmt.Errorf("holdfast: whether '%s' is given back is not known: %w", l.names[i], err)
		case err == errBroken, err == nil && reply == int64(0) && !l.named:
			// once more: a request that two brokers have seen counts twice
		case refused.Code() == "NOTHELD" && again:
			return nil
		case refused.Code() == "NOTHELD":
			return l.lost(i, "notheld")
		default:
			return err
		}
	}
}

func (l *Lock) lost(i int, reason string) error { return &LostError{l.names[i], l.Tokens()[i], reason} }

// hold begins a hold that was granted on a session.
func (l *Lock) hold(s *session, tokens []int64, deadline time.Time) {
	l.client.add(l)
	l.extend(tokens, deadline)
	if l.watched {
		go l.keep(s)
	}
	if l.client.ctx.Err() != nil {
		l.finish(ErrClosed)
	}
}

// extend moves the deadline. The context ends as long before it as a broker tells of a loss: a tenth, 500 ms at most.
func (l *Lock) extend(tokens []int64, deadline time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end != nil {
		return
	}
	left := time.Until(deadline)
	left -= min(left/10, 500*time.Millisecond)
	l.tokens, l.deadline = tokens, deadline
	if l.expiry != nil {
		l.expiry.Stop()
	}
	l.expiry = time.AfterFunc(left, func() {
		if l.Deadline() == deadline {
			l.finish(l.lost(0, "expired"))
		}
	})
}

// finish ends the hold and its context; what it gives back has ended it before.
func (l *Lock) finish(cause error) error {
	l.mu.Lock()
	before := l.end
	if before == nil {
		l.end = cause
		if l.expiry != nil {
			l.expiry.Stop()
		}
	}
	l.mu.Unlock()
	if before == nil {
		l.stop()
		l.client.remove(l)
		l.cancel(cause)
	}
	return before
}

// keep renews a watched lock, for the broker has to confirm what the holder may rely on, and takes it back on each new session.
func (l *Lock) keep(s *session) {
	for pause := time.Until(l.Deadline()) / 3; ; {
		select {
		case <-l.alive.Done():
			return
		case <-s.over:
		case <-time.After(pause):
		}
		var err error
		if s, err = l.client.current(l.alive); err != nil {
			return
		}
		pause = l.renew(s)
	}
}

// renew gives the time until the next one.
func (l *Lock) renew(s *session) time.Duration {
	tokens := make([]int64, len(l.names))
	least := time.Duration(math.MaxInt64)
	asked := time.Now()
	for i, name := range l.names {
		reply, err := s.do("RENEW", name, "OWNER", l.owner)
		if refused, _ := err.(Error); refused.Code() == "NOTHELD" {
			l.finish(l.lost(i, "notheld"))
		}
		pair, _ := reply.([]any)
		if err != nil || len(pair) != 2 {
			if err != errBroken {
				l.trouble(true)
			}
			return min(time.Until(l.Deadline())/10, retryMax)
		}
		tokens[i] = pair[0].(int64)
		least = min(least, time.Duration(pair[1].(int64))*time.Millisecond)
	}
	l.extend(tokens, asked.Add(least))
	l.trouble(false)
	return least / 3
}

func (l *Lock) trouble(is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.troubled == is {
		return
	}
	l.troubled = is
	select {
	case <-l.jeopardy:
	default:
	}
	l.jeopardy <- is
}

func (c *Client) add(l *Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range l.names {
		if c.holds[name] == nil {
			c.holds[name] = map[*Lock]struct{}{}
		}
		c.holds[name][l] = struct{}{}
	}
}

func (c *Client) remove(l *Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range l.names {
		delete(c.holds[name], l)
		if len(c.holds[name]) == 0 {
			delete(c.holds, name)
		}
	}
}
