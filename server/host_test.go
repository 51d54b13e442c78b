package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// What is read costs the same in whatever pieces it comes, but for what each piece costs by itself.
func TestCostOfFrames(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&b, nil)
	for id := range uint32(50) {
		if f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*id + 1, BlockFragment: make([]byte, 20*id)}) != nil || f.WriteContinuation(2*id+1, true, nil) != nil ||
			f.WriteData(2*id+1, false, make([]byte, 10*id)) != nil || f.WriteSettings() != nil {
			t.Fatal("not written")
		}
	}
	const calls, frames = 100, 100
	want := calls*80*time.Microsecond + frames*time.Microsecond + time.Duration(b.Len())*20*time.Nanosecond
	r := rand.New(rand.NewPCG(1, 1))
	for _, most := range []int{1, 2, 8, 10, 500, b.Len()} {
		var pieces [][]byte
		for rest := b.Bytes(); len(rest) > 0; {
			n := min(len(rest), 1+r.IntN(most))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if got := server.CostOf(pieces) - time.Duration(len(pieces))*5*time.Microsecond; got != want {
			t.Errorf("in pieces of up to %d: %s, want %s", most, got, want)
		}
	}
}

// An address may begin all connections that it may have at once, and after that so many a second as its share of a core pays for.
func TestConnectionsPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := server.NewHosts(server.Options{HostConnections: 64, Connections: 128, HostShare: 0.05})
		burst := func(host string) (n int) {
			for hosts.Connect(host) {
				n++
			}
			return n
		}
		if n := burst("a"); n != 320 {
			t.Errorf("%d connections at once", n)
		}
		time.Sleep(time.Second)
		if n := burst("a"); n != 25 {
			t.Errorf("%d connections a second later", n)
		}
		if n := burst("b"); n != 320 {
			t.Errorf("%d connections of another address", n)
		}
	})
}

// Addresses that are gone are forgotten; those that have not paid are not.
func TestManyAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := server.NewHosts(server.Options{HostConnections: 64, Connections: 128, HostShare: 0.05})
		for i := range 20_000 {
			p.Connect(fmt.Sprint("host", i))
			time.Sleep(time.Millisecond)
		}
		if n := p.Known(); n > 2*4096 {
			t.Errorf("%d addresses are remembered", n)
		}
	})
}

// crowd is a listener to which somebody connects whenever it listens: every 1000th time "b", else "a".
type crowd struct {
	net.Listener
	came, closed int
}

// caller is a connection of the crowd's.
type caller struct {
	house
	crowd *crowd
}

func (c *caller) Close() error { c.crowd.closed++; return nil }

// Accept implements net.Listener.
func (c *crowd) Accept() (net.Conn, error) {
	c.came++
	if c.came%1000 == 0 {
		return &caller{house{addr: "10.0.0.2"}, c}, nil
	}
	return &caller{house{addr: "10.0.0.1"}, c}, nil
}

// Whoever connects as fast as the node listens is hung up on, at a pace that costs the node little; others come in between.
func TestFloodOfConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := server.NewHosts(server.Options{HostConnections: 64, Connections: 1000, HostShare: 0.05})
		for hosts.Connect("10.0.0.1") {
		}
		c := &crowd{}
		l := hosts.Listener(c)
		began := time.Now()
		taken := map[string]int{}
		for time.Since(began) < 10*time.Second {
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
			if taken[host]++; c.came > 1_000_000 {
				t.Fatal("a million connections take no time")
			}
			_ = conn.Close() // nobody has shaken hands on it yet
		}
		c.closed -= taken["10.0.0.1"] + taken["10.0.0.2"]
		most := int((0.01+0.03*time.Since(began).Seconds())/35e-6) + 1
		if c.closed > most || c.closed < most*9/10 {
			t.Errorf("%d are hung up on in 10 s, of at most %d", c.closed, most)
		}
		if taken["10.0.0.1"] > 501 || taken["10.0.0.2"] != c.came/1000 {
			t.Errorf("%v are taken of %d", taken, c.came)
		}
	})
}

// street is a node in virtual time, whose callers have addresses.
type street struct {
	*server.Server
	t        *testing.T
	listener *bufconn.Listener
	coming   chan string
}

// house is a connection from an address.
type house struct {
	net.Conn
	addr string
}

func (h *house) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(h.addr), Port: 1} }

// Accept implements net.Listener.
func (s *street) Accept() (net.Conn, error) {
	c, err := s.listener.Accept()
	if err != nil {
		return nil, err
	}
	return &house{c, <-s.coming}, nil
}

func (s *street) Close() error   { return s.listener.Close() }
func (s *street) Addr() net.Addr { return s.listener.Addr() }

// dial connects from an address.
func (s *street) dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := s.listener.DialContext(ctx)
	if err == nil {
		s.coming <- addr
	}
	return c, err
}

func (s *street) feed(addr string) pb.FeedClient {
	s.t.Helper()
	c, err := grpc.NewClient("passthrough:///node", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.dial(ctx, addr) }))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return pb.NewFeedClient(c)
}

// onStreet runs a test beside such a node.
func onStreet(t *testing.T, test func(*testing.T, *street)) {
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{}
		s := &street{server.New(server.Options{Engine: e, Access: server.Access{Certificates: true}}), t, bufconn.Listen(256 << 10), make(chan string)}
		g := grpc.NewServer(s.GRPCOptions()...)
		s.Register(g)
		served := make(chan error, 1)
		go func() { served <- g.Serve(s) }()
		t.Cleanup(func() {
			g.Stop()
			s.Server.Close()
			e.Close()
			<-served
		})
		test(t, s)
	})
}

// flood sends 5000 calls over a connection, as fast as the node reads them, until the test ends.
func (s *street) flood(c net.Conn) {
	s.t.Helper()
	w := &wire{Conn: c, Framer: http2.NewFramer(c, c), t: s.t}
	w.hpack = hpack.NewEncoder(&w.block)
	w.hello()
	done := make(chan struct{}, 2)
	go func() {
		defer func() { done <- struct{}{} }()
		for b := make([]byte, 4096); ; {
			if _, err := c.Read(b); err != nil {
				return
			}
		}
	}()
	go func() {
		defer func() { done <- struct{}{} }()
		for id := uint32(1); id < 2*5000 && w.call(id, "Nothing") == nil; id += 2 {
			if w.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
				return
			}
		}
	}()
	s.t.Cleanup(func() {
		c.Close()
		<-done
		<-done
	})
}

// Calls of one address as fast as it can make them: the node reads so many as its share pays for, others are served at once, and other connections of
// the same address have their turn.
func TestFloodOfFrames(t *testing.T) {
	onStreet(t, func(t *testing.T, s *street) {
		began := time.Now()
		ask := func(feed pb.FeedClient) time.Duration {
			t.Helper()
			began := time.Now()
			if _, err := feed.Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: "{"}); status.Code(err) != codes.Unauthenticated {
				t.Error(err)
			}
			return time.Since(began)
		}
		same := s.feed("10.0.0.1")
		ask(same)
		var floods []net.Conn
		for range 20 {
			c, err := s.dial(t.Context(), "10.0.0.1")
			if err != nil {
				t.Fatal(err)
			}
			floods = append(floods, c)
		}
		for _, c := range floods {
			s.flood(c)
		}
		for range 3 {
			time.Sleep(time.Second)
			if d := ask(s.feed("10.0.0.2")); d > 0 {
				t.Errorf("another address waits for %s", d)
			}
		}
		if d := ask(same); d > 2*time.Second {
			t.Errorf("the same address waits for %s", d)
		}
		most := (0.64 + 0.05*time.Since(began).Seconds()) / 80e-6
		if n := float64((&node{Server: s.Server, t: t}).counted("refused_calls_total")); n > most || n < most/2 {
			t.Errorf("%g calls are looked at, of at most %g", n, most)
		}
	})
}

// Calls that say nothing hold memory until they are ended; nobody has more than so many of them, and places are free again when they end.
func TestSilentCallsAreBounded(t *testing.T) {
	g := unguarded(t, &servertest.Engine{}, server.Options{HostShare: unbounded, HelloTimeout: time.Hour})
	job := g.beside(shown{})
	var all []*wire
	for range 5 { // 1250 calls: whoever asks meanwhile may have the place of one
		w := g.wire().hello()
		for i := range uint32(250) {
			if err := w.call(2*i+1, "Fetch"); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, w)
	}
	ask := func() (codes.Code, string) {
		w := g.wire().hello()
		defer w.Close()
		if err := errors.Join(w.call(1, "Open"), w.message(1, false, nil)); err != nil {
			t.Fatal(err)
		}
		return w.status(1)
	}
	until(t, "there is no end to calls that say nothing", func() bool {
		code, message := ask()
		return code == codes.ResourceExhausted && strings.Contains(message, "1000 calls have not said")
	})
	job.batches(3)
	for _, w := range all {
		w.Close()
	}
	until(t, "places are not given back", func() bool { code, _ := ask(); return code == codes.FailedPrecondition })
}
