package holdfast

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Options say where the brokers are and how to talk to them. The zero value is a broker on this machine.
type Options struct {
	// Brokers are host:port, or the path of a Unix socket; without any, 127.0.0.1:5625. Of several, each is asked
	// in turn which one to use, as a Sentinel would be, and the client moves on when its broker fails. A single one
	// is used as it is.
	Brokers []string
	// Service is the name that brokers go by, "holdfast" unless their configuration says otherwise.
	Service            string
	Username, Password string
	TLSConfig          *tls.Config
	// Timeout ends what a broker does not answer, and the connection with it; 3 s. A broker that stands still is
	// found out after four thirds of it, which should be well below the lease.
	Timeout time.Duration
	// Name begins the owners that this client makes, which people see in LOCKINFO; the host and the process.
	Name string
	// TagPrefix begins the tags of requests: needed for a user who may only use some names, as tags have to fit them.
	TagPrefix string
}

// An Option changes how a lock is taken; the manual holdfast-protocol(7) explains each of them.
type Option func(*request)

// request is what Lock and TryLock were asked for.
type request struct {
	names   []string
	words   []any         // of LOCK, behind the name
	owner   string        // that the caller has named
	waits   bool          // stands in line
	wait    time.Duration // for so long; 0: until the context ends
	watched bool
}

func words(more ...any) Option { return func(r *request) { r.words = append(r.words, more...) } }

// Wait bounds how long Lock stands in line; otherwise only its context does. ErrNotGranted tells that it is over.
func Wait(d time.Duration) Option { return func(r *request) { r.wait = max(d, time.Millisecond) } }

// Lease takes the lock for this time; nobody renews it, and it does not depend on a connection.
func Lease(d time.Duration) Option {
	return func(r *request) {
		r.watched = false
		r.words = append(r.words, "LEASE", d.Milliseconds())
	}
}

// MaxHold ends a lock that is held for longer.
func MaxHold(d time.Duration) Option { return words("MAXHOLD", d.Milliseconds()) }

// Shared takes a reader's share, together with others.
func Shared() Option { return words("SHARED") }

// Limit takes one of n permits.
func Limit(n int) Option { return words("LIMIT", n) }

// Fair keeps the order of arrival across brokers.
func Fair() Option { return words("FAIR") }

// And takes these names too: all or none.
func And(names ...string) Option {
	return func(r *request) { r.names = append(r.names, names...) }
}

// Owner names who is to hold the lock. All who name the same owner hold it together: a second Lock enters it once more,
// and it is free after as many Unlocks. Without it each Lock is an owner of its own, and no lock is entered twice.
func Owner(id string) Option { return func(r *request) { r.owner = id } }

var (
	// ErrNotGranted: somebody else has the lock.
	ErrNotGranted = errors.New("holdfast: not granted in time")
	// ErrNoBroker: none could be reached in that time; errors.Is finds the end of a context in it as well.
	ErrNoBroker = errors.New("holdfast: no broker")
	// ErrReleased is the cause of a lock's context after Unlock.
	ErrReleased = errors.New("holdfast: released")
	// ErrClosed is the cause of all contexts after Close of the client.
	ErrClosed = errors.New("holdfast: the client is closed")
	// ErrLost is what each LostError is.
	ErrLost = errors.New("holdfast: lock lost")

	errBroken = errors.New("holdfast: the connection to the broker ended")
)

// LostError tells that a lock ended while its holder had it.
type LostError struct {
	Name   string
	Token  int64
	Reason string // a word of holdfast-protocol(7), such as forced; "expired": not confirmed in time; "notheld"
}

func (e *LostError) Error() string {
	return fmt.Sprintf("holdfast: lock '%s' under token %d is lost: %s", e.Name, e.Token, e.Reason)
}

// Unwrap makes errors.Is(err, ErrLost) true.
func (e *LostError) Unwrap() error { return ErrLost }

// Error is what a broker has refused a request with.
type Error string

func (e Error) Error() string { return "holdfast: " + string(e) }

// Code is its first word: NOQUORUM, DEADLOCK, KIND, LIMIT, NOPERM and others.
func (e Error) Code() string {
	code, _, _ := strings.Cut(string(e), " ")
	return code
}
