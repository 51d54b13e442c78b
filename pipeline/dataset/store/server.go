package store

import (
	"context"
	"errors"
	"math/bits"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// server is what all Stores of one place share: connections, credentials, and what is known of how fast it answers.
type server struct {
	place  string
	client *http.Client
	users  int // guarded by servers.mu
	keys   *keyring
	region atomic.Pointer[string]

	medians                                     [64]median // of reads by the bits of their size
	lists, looks                                median     // of other questions
	hedging                                     atomic.Int64
	requests, received, retries, hedges, failed atomic.Int64
	nanoseconds                                 atomic.Int64

	troubles troubles
}

// serverName tells servers apart.
func (l *location) serverName() string { return l.place() + "?" + l.options.Encode() }

// Traffic is what was asked of one place on a server so far.
type Traffic struct {
	// Place is the bucket or the host, without a path.
	Place string
	// Requests that were sent, those among them that repeated another one after trouble, and those that were sent
	// since another one took long.
	Requests, Retries, Hedges int64
	// Failed are the questions that were given up.
	Failed int64
	// Bytes of objects that came.
	Bytes int64
	// Seconds that requests took, all of them together.
	Seconds float64
}

// servers of this process, by place and options. They stay: a place is read again, and its counts are for good.
var servers = struct {
	mu  sync.Mutex
	all map[string]*server
}{all: map[string]*server{}}

// Traffics tells of all places on servers that this process has read, by their names, and of those that urls lie in, read or not: what is
// no URL of a server is left out.
func Traffics(urls ...string) []Traffic {
	by := map[string]*Traffic{}
	for _, u := range urls {
		if l, err := parse(u); err == nil && IsURL(u) {
			by[l.place()] = &Traffic{Place: l.place()}
		}
	}
	servers.mu.Lock()
	defer servers.mu.Unlock()
	for _, s := range servers.all {
		t := by[s.place]
		if t == nil {
			t = &Traffic{Place: s.place}
			by[s.place] = t
		}
		t.Requests += s.requests.Load()
		t.Retries += s.retries.Load()
		t.Hedges += s.hedges.Load()
		t.Failed += s.failed.Load()
		t.Bytes += s.received.Load()
		t.Seconds += time.Duration(s.nanoseconds.Load()).Seconds()
	}
	all := make([]Traffic, 0, len(by))
	for _, t := range by {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b Traffic) int { return strings.Compare(a.Place, b.Place) })
	return all
}

// useServer returns the server of a place, which release gives back.
func useServer(l *location) *server {
	servers.mu.Lock()
	defer servers.mu.Unlock()
	key := l.serverName()
	s := servers.all[key]
	if s == nil {
		s = &server{place: l.place(), client: newClient()}
		servers.all[key] = s
	}
	s.users++
	return s
}

// release ends a use. Where nobody uses the server its connections are closed.
func (s *server) release() {
	servers.mu.Lock()
	defer servers.mu.Unlock()
	if s.users--; s.users == 0 {
		s.client.CloseIdleConnections()
	}
}

// errMetadata refuses an address.
var errMetadata = errors.New("it is an address of this machine's network alone, where clouds keep credentials, and is never read")

// newClient follows no redirects, and asks no addresses where credentials lie.
func newClient() *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		if isMetadata(address) {
			return errMetadata
		}
		return nil
	}}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, DisableCompression: true,
			MaxIdleConns: 1024, MaxIdleConnsPerHost: 256, IdleConnTimeout: 90 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second, ReadBufferSize: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// send sends one request, and counts it.
func (s *server) send(q *http.Request) (*http.Response, error) {
	s.requests.Add(1)
	return s.client.Do(q)
}

// median follows the median of what it is told.
type median struct{ count, value atomic.Int64 }

// leastKnown is how many reads there were before one is held to be slow.
const leastKnown = 16

// tell moves the median by a sixteenth. Lost updates do no harm.
func (m *median) tell(took time.Duration) {
	old := m.value.Load()
	switch {
	case m.count.Add(1) == 1:
		m.value.Store(int64(took))
	case int64(took) > old:
		m.value.Store(old + old/16 + 1)
	default:
		m.value.Store(old - old/16)
	}
}

// slowAfter is how long a read of n bytes takes before another one is sent in its place, too: three times the median.
// Of a size that was seldom read it is that of the next longer one, else of a shorter one, by the bytes. Zero: none is
// known yet.
func (s *server) slowAfter(n int) time.Duration {
	at := bits.Len(uint(n))
	for k := at; k < len(s.medians); k++ {
		if after := s.medians[k].slowAfter(); after > 0 {
			return after
		}
	}
	for k := at - 1; k >= 0; k-- {
		if after := s.medians[k].slowAfter(); after > 0 {
			return after << min(at-k, 10)
		}
	}
	return 0
}

// slowAfter is how long a question takes before it is asked once more beside; 0: that is not known yet.
func (m *median) slowAfter() time.Duration {
	if m.count.Load() < leastKnown {
		return 0
	}
	return max(3*time.Duration(m.value.Load()), leastSlow)
}

// leastSlow is the shortest time that is held to be long.
const leastSlow = 5 * time.Millisecond

func (s *server) tell(n int, took time.Duration) { s.medians[bits.Len(uint(n))].tell(took) }

// wait sleeps, or returns the error of ctx.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
