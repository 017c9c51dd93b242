package holdfast

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// What needs no fault; clients/scenarios has those. HOLDFAST_BROKER is the address of a broker.

func options(t *testing.T) Options {
	t.Helper()
	broker := os.Getenv("HOLDFAST_BROKER")
	if broker == "" {
		t.Fatal("HOLDFAST_BROKER does not say where a broker is")
	}
	return Options{Brokers: []string{broker}}
}

func client(t *testing.T) *Client {
	t.Helper()
	c, err := New(options(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func must(t *testing.T) func(*Lock, error) *Lock {
	return func(l *Lock, err error) *Lock {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func TestContextEndsWithTheLock(t *testing.T) {
	c, ctx := client(t), context.Background()
	l := must(t)(c.Lock(ctx, t.Name()))
	if l.Token() <= 0 || l.Err() != nil || l.Context().Err() != nil || time.Until(l.Deadline()) <= 0 {
		t.Fatalf("not held: %v", l.Err())
	}
	if _, err := c.TryLock(ctx, t.Name()); err != ErrNotGranted {
		t.Fatal(err)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if cause := context.Cause(l.Context()); cause != ErrReleased {
		t.Fatal(cause)
	}
	if err := l.Unlock(); err != ErrReleased {
		t.Fatal(err)
	}
	next := must(t)(c.TryLock(ctx, t.Name()))
	if next.Token() <= l.Token() {
		t.Fatal("the token has not grown")
	}
}

func TestNameWithBlanksIsLost(t *testing.T) {
	c, name := client(t), "a name, with blanks: "+t.Name()
	l := must(t)(c.Lock(context.Background(), name))
	admin := redis.NewClient(&redis.Options{Addr: options(t).Brokers[0]})
	defer admin.Close()
	if err := admin.Do(context.Background(), "FORCEUNLOCK", name).Err(); err != nil {
		t.Fatal(err)
	}
	<-l.Context().Done()
	var lost *LostError
	if !errors.As(context.Cause(l.Context()), &lost) || lost.Reason != "forced" || lost.Name != name || lost.Token != l.Token() {
		t.Fatal(context.Cause(l.Context()))
	}
	if err := l.Unlock(); !errors.Is(err, ErrLost) {
		t.Fatal(err)
	}
}

// The race detector sees it when two are inside.
func TestManyExcludeEachOther(t *testing.T) {
	a, b := client(t), client(t)
	inside, last := 0, int64(0)
	var all sync.WaitGroup
	for i := 0; i < 300; i++ {
		c := a
		if i%2 == 1 {
			c = b
		}
		all.Add(1)
		go func() {
			defer all.Done()
			l, err := c.Lock(context.Background(), t.Name())
			if err != nil {
				t.Error(err)
				return
			}
			inside++
			if l.Token() <= last {
				t.Errorf("token %d after %d", l.Token(), last)
			}
			last = l.Token()
			if err := l.Unlock(); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	if inside != 300 {
		t.Fatal(inside)
	}
}

// Wherever a wait is given up, nothing stays held.
func TestCancelAtAnyPoint(t *testing.T) {
	c := client(t)
	var all sync.WaitGroup
	for i := 0; i < 500; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.Intn(20000))*time.Microsecond)
			defer cancel()
			l, err := c.Lock(ctx, t.Name())
			if err == nil {
				err = l.Unlock()
			}
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	must(t)(c.Lock(context.Background(), t.Name(), Wait(10*time.Second)))
}

func TestEndOfParentKeepsTheLock(t *testing.T) {
	c := client(t)
	ctx, cancel := context.WithCancel(context.Background())
	l := must(t)(c.Lock(ctx, t.Name()))
	cancel()
	if cause := context.Cause(l.Context()); cause != context.Canceled {
		t.Fatal(cause)
	}
	if _, err := c.TryLock(context.Background(), t.Name()); err != ErrNotGranted {
		t.Fatal(err)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Lock(ctx, t.Name()); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestReentryWhenAskedFor(t *testing.T) {
	c, ctx, owner := client(t), context.Background(), Owner("test:"+random())
	outer := must(t)(c.Lock(ctx, t.Name(), owner))
	inner := must(t)(c.TryLock(ctx, t.Name(), owner))
	for _, l := range []*Lock{inner, outer} {
		if _, err := c.TryLock(ctx, t.Name()); err != ErrNotGranted {
			t.Fatal(err)
		}
		if err := l.Unlock(); err != nil {
			t.Fatal(err)
		}
	}
	must(t)(c.TryLock(ctx, t.Name()))
}

func TestSeveralNames(t *testing.T) {
	c, ctx := client(t), context.Background()
	l := must(t)(c.Lock(ctx, t.Name()+"1", And(t.Name()+"2")))
	if len(l.Tokens()) != 2 {
		t.Fatal(l.Tokens())
	}
	if _, err := c.TryLock(ctx, t.Name()+"2", And(t.Name()+"3")); err != ErrNotGranted {
		t.Fatal(err)
	}
	must(t)(c.TryLock(ctx, t.Name()+"3"))
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	must(t)(c.TryLock(ctx, t.Name()+"2"))
}

func TestCloseGivesBack(t *testing.T) {
	c, err := New(options(t))
	if err != nil {
		t.Fatal(err)
	}
	l := must(t)(c.Lock(context.Background(), t.Name()))
	waited := make(chan error)
	go func() {
		_, err := c.Lock(context.Background(), t.Name())
		waited <- err
	}()
	c.Close()
	if err := <-waited; err != ErrClosed {
		t.Fatal(err)
	}
	if cause := context.Cause(l.Context()); cause != ErrClosed {
		t.Fatal(cause)
	}
	must(t)(client(t).Lock(context.Background(), t.Name(), Wait(10*time.Second)))
}

func TestRefusals(t *testing.T) {
	c, ctx := client(t), context.Background()
	must(t)(c.Lock(ctx, t.Name(), Limit(2)))
	var refused Error
	if _, err := c.TryLock(ctx, t.Name()); !errors.As(err, &refused) || refused.Code() != "KIND" {
		t.Fatal(err)
	}
	if _, err := c.Lock(ctx, ""); !errors.As(err, &refused) || refused.Code() != "ERR" {
		t.Fatal(err)
	}
	nobody, err := New(Options{Brokers: []string{"127.0.0.1:1"}, Timeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	if _, err := nobody.TryLock(ctx, t.Name()); !errors.Is(err, ErrNoBroker) {
		t.Fatal(err)
	}
	if _, err := New(Options{TagPrefix: "a*"}); err == nil {
		t.Fatal("a prefix that is a pattern")
	}
}

func Example() {
	client, err := New(Options{Brokers: []string{"broker-a:5625", "broker-b:5625"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	lock, err := client.Lock(context.Background(), "invoice:42", Wait(5*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Unlock()
	fmt.Println(lock.Token())
	<-lock.Context().Done()
	fmt.Println(context.Cause(lock.Context()))
}
