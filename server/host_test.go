package server_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/servertest"
)

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
		s := &street{server.New(server.Options{Engine: e, Access: admission.Access{Certificates: true}}), t, bufconn.Listen(256 << 10), make(chan string)}
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

// greet connects from an address, and returns once the node has a place for the connection and says so.
func (s *street) greet(addr string) *wire {
	s.t.Helper()
	c, err := s.dial(s.t.Context(), addr)
	if err != nil {
		s.t.Fatal(err)
	}
	w := newWire(s.t, c).hello()
	if _, err := w.ReadFrame(); err != nil {
		s.t.Fatal(err)
	}
	return w
}

// flood sends 5000 calls over a connection, as fast as the node reads them, until the test ends.
func (s *street) flood(w *wire) {
	c := w.Conn
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

// Calls of one address as fast as it can make them: the node reads so many as its share pays for, others are served at
// once, and other connections of the same address have their turn.
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
		var floods []*wire
		for range 20 {
			floods = append(floods, s.greet("10.0.0.1"))
		}
		for _, w := range floods {
			s.flood(w)
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

// Calls that say nothing hold memory until they are ended; nobody has more than so many of them, and places are free
// again when they end.
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
	more := g.wire().hello()
	all = append(all, more)
	next := uint32(1)
	until(t, "there is no end to calls that say nothing", func() bool {
		code, message := ask()
		if err := more.call(next, "Fetch"); err != nil { // which has the place of one that asked while the others came
			t.Fatal(err)
		}
		next += 2
		return code == codes.ResourceExhausted && strings.Contains(message, "1000 calls have not said")
	})
	job.batches(3)
	for _, w := range all {
		w.Close()
	}
	until(t, "places are not given back", func() bool { code, _ := ask(); return code == codes.FailedPrecondition })
}
