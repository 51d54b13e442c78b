package client_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const plan = `{"source": {"root": "photos"}, "seed": 17}`

// cluster is some nodes by address, on listeners in memory.
type cluster struct {
	t    testing.TB
	root string
	log  *logBook

	mu    sync.Mutex
	nodes map[string]*servedNode
}

type servedNode struct {
	cluster  *cluster
	addr     string
	end      func()
	server   *server.Server
	grpc     *grpc.Server
	listener *bufconn.Listener
	served   chan struct{}

	mu    sync.Mutex
	conns []*wire
	dials int
}

func newCluster(t testing.TB) *cluster {
	return &cluster{t: t, root: t.TempDir(), log: &logBook{}, nodes: map[string]*servedNode{}}
}

// start runs a node until the end of the test, or until it is killed; a later start with the same address takes its
// place.
func (c *cluster) start(addr string, e *servertest.Engine, o server.Options) *servedNode {
	o.Engine = e
	o.Roots = map[string]string{"photos": c.root}
	return c.serve(addr, o, e.Close)
}

// serve runs a node; end is called after it was stopped.
func (c *cluster) serve(addr string, o server.Options, end func()) *servedNode {
	if o.Version == "" {
		o.Version = addr
	}
	n := &servedNode{cluster: c, addr: addr, end: end, server: server.New(o), listener: bufconn.Listen(64 << 10), served: make(chan struct{})}
	n.grpc = grpc.NewServer(n.server.GRPCOptions()...)
	n.server.Register(n.grpc)
	return n.listen()
}

// listen answers at the node's address until the end of the test.
func (n *servedNode) listen() *servedNode {
	go func() {
		defer close(n.served)
		_ = n.grpc.Serve(n.listener)
	}()
	n.cluster.mu.Lock()
	n.cluster.nodes[n.addr] = n
	n.cluster.mu.Unlock()
	n.cluster.t.Cleanup(n.kill)
	return n
}

// kill ends a node without a word: its connections break at once, whatever is on them.
func (n *servedNode) kill() {
	n.cluster.mu.Lock()
	if n.cluster.nodes[n.addr] == n {
		delete(n.cluster.nodes, n.addr)
	}
	n.cluster.mu.Unlock()
	n.cut()
	n.grpc.Stop()
	n.server.Close()
	n.end()
	<-n.served
}

// cut breaks all connections to a node.
func (n *servedNode) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.conns {
		w.Close()
	}
	n.conns = nil
}

// freeze stops everything on the connections to a node, and further ones; they stay open.
func (n *servedNode) freeze(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.conns {
		w.freeze(on)
	}
}

// connect dials a node; nobody listens at other addresses, and "hole" swallows everything.
func (c *cluster) connect(ctx context.Context, addr string) (net.Conn, error) {
	if strings.HasPrefix(addr, "hole") {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	c.mu.Lock()
	n := c.nodes[addr]
	c.mu.Unlock()
	if n == nil {
		return nil, fmt.Errorf("dial %s: connection refused", addr)
	}
	conn, err := n.listener.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	w := newWire(conn)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dials++
	n.conns = append(n.conns, w)
	return w, nil
}

func (c *cluster) options(addrs ...string) client.Options {
	return client.Options{
		Plan: plan, Nodes: addrs, Log: slog.New(slog.NewTextHandler(c.log, nil)),
		Dialing: node.DialOptions{Connect: c.connect},
	}
}

// open opens a fleet of nodes and waits until all that run are in it.
func (c *cluster) open(o client.Options) *client.Fleet {
	c.t.Helper()
	f, err := client.New(o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(f.Close)
	if _, err := f.Open(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	running := 0
	c.mu.Lock()
	for _, addr := range o.Nodes {
		if c.nodes[addr] != nil {
			running++
		}
	}
	c.mu.Unlock()
	if o.Local != nil {
		running++
	}
	c.await(f, running)
	return f
}

// await waits until so many nodes are ready.
func (c *cluster) await(f *client.Fleet, ready int) {
	c.t.Helper()
	c.until("nodes do not become ready", func() bool {
		n := 0
		for _, s := range f.Status() {
			if s.State == client.Ready {
				n++
			}
		}
		return n == ready
	})
}

// until waits for something that tells nobody when it happens.
func (c *cluster) until(otherwise string, done func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("%s; log:\n%s", otherwise, c.log)
		}
	}
}

// wire is a connection that can be held up.
type wire struct {
	net.Conn
	flip func([]byte) // may change what the trainer reads

	mu     sync.Mutex
	thaw   sync.Cond
	frozen bool
	closed bool
}

func newWire(c net.Conn) *wire {
	w := &wire{Conn: c}
	w.thaw.L = &w.mu
	return w
}

func (w *wire) freeze(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frozen = on
	w.thaw.Broadcast()
}

func (w *wire) wait() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.frozen && !w.closed {
		w.thaw.Wait()
	}
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.wait()
	if w.flip != nil {
		w.flip(b[:n])
	}
	return n, err
}

func (w *wire) Write(b []byte) (int, error) {
	w.wait()
	return w.Conn.Write(b)
}

func (w *wire) Close() error {
	w.mu.Lock()
	w.closed = true
	w.thaw.Broadcast()
	w.mu.Unlock()
	return w.Conn.Close()
}

// logBook keeps what was logged.
type logBook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func rangeOf(epoch uint32, position uint64, count uint32) *pb.Name {
	return &pb.Name{Epoch: epoch, Samples: &pb.Name_Range{Range: &pb.Range{Position: position, Count: count}}}
}

// ask wants one batch and waits for it.
func ask(f *client.Fleet, n *pb.Name, bytes int) client.Result {
	result := make(chan client.Result, 1)
	f.Want(&client.Want{Name: n, Request: batch.Request{Dst: make([]byte, bytes)}, Done: func(r client.Result) { result <- r }})
	return <-result
}

// digest runs whole epochs and returns what came.
func digest(t testing.TB, l *loader.Loader, epochs int) string {
	t.Helper()
	d := loader.NewDigest()
	for range epochs {
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Add(b); err != nil {
				t.Fatal(err)
			}
			b.Release()
		}
	}
	return fmt.Sprintf("%d %s", d.Samples(), d.Sum())
}

func newLoader(t testing.TB, o loader.Options) *loader.Loader {
	t.Helper()
	l, err := loader.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}
