package holdfast

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const batchMax = 256

// session is one connection for requests and one that listens, both to the same broker. When one of them fails the
// session is over, and what it held is taken back by the next one.
type session struct {
	client   *Client
	rdb      *redis.Client
	sub      *redis.PubSub
	prefix   string
	calls    chan *call
	waiting  sync.Map // tag to *ask
	over     chan struct{}
	failOnce sync.Once
}

// call is a command on its way.
type call struct {
	*redis.Cmd
	answered chan struct{}
}

// ask is a LOCK that has not ended.
type ask struct {
	lock *Lock
	at   time.Time // no later than it was sent
	end  chan error
}

// abortConn resets the connection when it is given up: said in order, its end could reach a broker that stood still
// behind a RENEW which it has not read yet, and release there what another broker holds by now.
type abortConn struct{ net.Conn }

func (c abortConn) Close() error {
	under := c.Conn
	if secured, ok := under.(*tls.Conn); ok {
		under = secured.NetConn()
	}
	if tcp, ok := under.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	return c.Conn.Close()
}

// redis gives options for so many connections and none after them: one that is replaced unseen would have lost its locks.
func (o *Options) redis(address string, connections int32) *redis.Options {
	options := &redis.Options{Addr: address, Protocol: 2, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		DialTimeout: o.Timeout, ReadTimeout: o.Timeout, WriteTimeout: o.Timeout, MaxRetries: -1, PoolSize: 1}
	if strings.HasPrefix(address, "/") {
		options.Network = "unix"
	}
	dial := redis.NewDialer(options)
	options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		if atomic.AddInt32(&connections, -1) < 0 {
			return nil, errBroken
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return abortConn{conn}, nil
	}
	return options
}

// address is which broker to use, by the word of this one.
func (o *Options) address(ctx context.Context, broker string) (string, error) {
	if len(o.Brokers) == 1 {
		return broker, nil
	}
	asked := redis.NewSentinelClient(o.redis(broker, 1))
	defer asked.Close()
	words, err := asked.GetMasterAddrByName(ctx, o.Service).Result()
	if err != nil {
		return "", err
	}
	if len(words) != 2 {
		return "", fmt.Errorf("holdfast: %s gave %d words as an address", broker, len(words))
	}
	return net.JoinHostPort(words[0], words[1]), nil
}

func (c *Client) connect(broker string) (*session, error) {
	ctx, cancel := context.WithTimeout(c.ctx, 2*c.options.Timeout)
	defer cancel()
	address, err := c.options.address(ctx, broker)
	if err != nil {
		return nil, err
	}
	rdb := redis.NewClient(c.options.redis(address, 2))
	prefix := c.options.TagPrefix + random()
	s := &session{client: c, rdb: rdb, sub: rdb.PSubscribe(ctx, "async:"+prefix+"*"), prefix: prefix,
		calls: make(chan *call), over: make(chan struct{})}
	err = s.sub.Subscribe(ctx, "lost")
	for n := 0; err == nil && n < 2; n++ {
		_, err = s.sub.ReceiveTimeout(ctx, c.options.Timeout)
	}
	if err == nil {
		err = rdb.Ping(ctx).Err()
	}
	if err != nil {
		s.fail()
		return nil, err
	}
	return s, nil
}

func (s *session) fail() {
	s.failOnce.Do(func() {
		close(s.over)
		_ = s.sub.Close()
		_ = s.rdb.Close()
	})
}

// serve runs until the session or the client ends.
func (s *session) serve() {
	defer s.fail()
	go s.listen()
	go s.send()
	ticker := time.NewTicker(s.client.options.Timeout / 3)
	defer ticker.Stop()
	for {
		select {
		case <-s.over:
			return
		case <-s.client.ctx.Done():
			_, _ = s.do("QUIT")
			return
		case <-ticker.C:
		}
		if s.sub.Ping(context.Background()) != nil {
			return
		}
		if _, err := s.do("PING"); err != nil {
			return
		}
	}
}

// send writes commands one pipeline after the other: all that have come meanwhile are the next one.
func (s *session) send() {
	for {
		var calls []*call
		select {
		case one := <-s.calls:
			calls = append(calls, one)
		case <-s.over:
			return
		}
		for more := true; more && len(calls) < batchMax; {
			select {
			case one := <-s.calls:
				calls = append(calls, one)
			default:
				more = false
			}
		}
		pipeline := s.rdb.Pipeline()
		for _, one := range calls {
			_ = pipeline.Process(context.Background(), one.Cmd)
		}
		_, _ = pipeline.Exec(context.Background())
		for _, one := range calls {
			if err, refused := one.Err(), redis.Error(nil); err != nil && !errors.As(err, &refused) {
				s.fail()
			}
			close(one.answered)
		}
	}
}

// do says a command and gives the reply: an Error when the broker has refused it, or errBroken, and then it may have been
// carried out.
func (s *session) do(words ...any) (any, error) {
	one := &call{redis.NewCmd(context.Background(), words...), make(chan struct{})}
	select {
	case s.calls <- one:
		<-one.answered
	case <-s.over:
		return nil, errBroken
	}
	reply, err := one.Result()
	if refused := redis.Error(nil); errors.As(err, &refused) {
		return nil, Error(refused.Error())
	} else if err != nil {
		return nil, errBroken
	}
	return reply, nil
}

// listen takes what the broker tells.
func (s *session) listen() {
	defer s.fail()
	for {
		message, err := s.sub.ReceiveTimeout(context.Background(), s.client.options.Timeout)
		if err != nil {
			return
		}
		told, ok := message.(*redis.Message)
		if !ok {
			continue
		}
		if tag, ok := strings.CutPrefix(told.Channel, "async:"); ok {
			s.ended(tag, told.Payload)
		} else {
			s.client.lost(told.Payload)
		}
	}
}

// ended takes the end of an ask: "granted token validity waited", "error text", "timeout" or "cancelled".
func (s *session) ended(tag, payload string) {
	entry, ok := s.waiting.LoadAndDelete(tag)
	if !ok {
		return
	}
	a := entry.(*ask)
	what, rest, _ := strings.Cut(payload, " ")
	switch what {
	case "granted":
		var words string
		var validity, waited int64
		_, err := fmt.Sscan(rest, &words, &validity, &waited)
		var tokens []int64
		for _, word := range strings.Split(words, ",") {
			token, failed := strconv.ParseInt(word, 10, 64)
			tokens, err = append(tokens, token), errors.Join(err, failed)
		}
		if err != nil || len(tokens) != len(a.lock.names) {
			a.end <- Error("ERR no grant: " + payload)
			return
		}
		a.lock.hold(s, tokens, a.at.Add(time.Duration(waited+validity)*time.Millisecond))
		a.end <- nil
	case "error":
		a.end <- Error(rest)
	default:
		a.end <- ErrNotGranted
	}
}

// ask takes a lock on this session: nil, or why not.
func (s *session) ask(ctx context.Context, l *Lock, words []any) error {
	tag := s.prefix + strconv.FormatUint(s.client.count.Add(1), 10)
	a := &ask{lock: l, at: time.Now(), end: make(chan error, 1)}
	s.waiting.Store(tag, a)
	if _, err := s.do(append(words, "ASYNC", tag)...); err != nil && err != errBroken {
		s.waiting.Delete(tag)
		return err
	}
	select {
	case err := <-a.end:
		return err
	case <-s.over:
		return s.abandoned(tag, a)
	case <-ctx.Done():
		go s.cancel(tag, a)
		return ctx.Err()
	}
}

// abandoned is how an ask ends whose session is over: granted if that was read already.
func (s *session) abandoned(tag string, a *ask) error {
	if _, still := s.waiting.LoadAndDelete(tag); still {
		return errBroken
	}
	return <-a.end
}

// cancel ends a wait; what was granted meanwhile is given back.
func (s *session) cancel(tag string, a *ask) {
	_, _ = s.do("CANCEL", tag)
	var err error
	select {
	case err = <-a.end:
	case <-s.over:
		err = s.abandoned(tag, a)
	}
	if err == nil {
		_ = a.lock.Unlock()
	}
}
