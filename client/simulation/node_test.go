package simulation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/revision"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// node is an address and the server that listens there, now and then.
type simulatedNode struct {
	world *world
	index int
	addr  string
	life  chan struct{} // holds one element while it is started or stopped

	mu    sync.Mutex
	ups   int // 1: it is to run; fewer: so many faults hold it down
	run   *running
	links links

	// How it is: numbers count the faults that make it so.
	slow, broken, lying, frozen, narrow, refusing, hole int

	frozenAt        time.Time
	hangs           time.Time    // until then
	content, digest string       // of its data and its pixels; empty: the right ones
	build           revision.Set // nil: that of the others
	liar            bool         // it has sent wrong bytes on purpose
	asked           map[string]int
	single          bool // a batch of one sample was among these
}

// running is a server and what it stands on.
type running struct {
	engine   *servertest.Engine
	server   *server.Server
	grpc     *grpc.Server
	listener *bufconn.Listener
	served   chan struct{}
}

func newNode(w *world, index int) *simulatedNode {
	return &simulatedNode{world: w, index: index, addr: addr(index), life: make(chan struct{}, 1), asked: map[string]int{}}
}

// change does something under the node's lock.
func (n *simulatedNode) change(do func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	do()
}

// start lets the node run, unless another fault holds it down.
func (n *simulatedNode) start() {
	n.life <- struct{}{}
	defer func() { <-n.life }()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ups++; n.ups == 1 {
		n.run = n.serve()
	}
}

// stop ends the server, in order or at once.
func (n *simulatedNode) stop(orderly bool) {
	n.life <- struct{}{}
	defer func() { <-n.life }()
	n.mu.Lock()
	r := n.run
	n.ups--
	n.run = nil
	n.mu.Unlock()
	if r == nil {
		return
	}
	if orderly {
		n.drain(r)
	}
	n.cut()
	r.grpc.Stop()
	r.server.Close()
	r.engine.Close()
	<-r.served
	n.world.buried(r)
}

// drain stops a server as SIGTERM does. What is not done after a while is broken off; where nothing else is wrong there
// is nothing left.
func (n *simulatedNode) drain(r *running) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	defer cancel()
	if err := r.server.Stop(ctx, r.grpc); err != nil && n.world.only(n.index, draining) {
		n.world.fail("%s did not drain: %v", n.addr, err)
	}
}

// restart ends the server and starts another one after a change.
func (n *simulatedNode) restart(do func()) {
	n.stop(false)
	n.change(do)
	n.start()
}

// serve starts a server. mu is held.
func (n *simulatedNode) serve() *running {
	w := n.world
	r := &running{listener: bufconn.Listen(64 << 10), served: make(chan struct{})}
	r.engine = &servertest.Engine{
		Samples: w.shape.samples, Height: w.shape.side, Width: w.shape.side, Content: n.content, Digest: n.digest,
		Delay: n.delay, Fail: n.failure, Damage: n.damage, Build: n.build, Format: format,
	}
	r.server = server.New(server.Options{Engine: r.engine, Roots: map[string]string{"photos": w.root}, StreamBytes: w.streamBytes, Version: n.addr})
	r.grpc = grpc.NewServer(r.server.GRPCOptions()...)
	r.server.Register(r.grpc)
	go func() {
		defer close(r.served)
		_ = r.grpc.Serve(r.listener)
	}()
	return r
}

// format has some files decoded by another codec, of which not every node has the job's revision.
func format(index uint64) string {
	if index%16 == 3 {
		return "png"
	}
	return "jpeg"
}

// delay is how long a batch takes, each time another while.
func (n *simulatedNode) delay(name *batch.Name) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	what := fmt.Sprintf("%d/%d+%d", name.Epoch, name.Position, name.Count)
	n.asked[what]++
	n.single = n.single || name.Count == 1
	n.world.record("%s makes %s", n.addr, what)
	usual := n.world.scenario.nodes[n.index]
	d := between(drawn(n.world.seed, n.addr, what, n.asked[what]), usual/2, 2*usual)
	if n.slow > 0 {
		d *= 20
	}
	return d + max(time.Until(n.hangs), 0)
}

var errDisk = errors.New("input/output error")

func (n *simulatedNode) failure(name *batch.Name) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.broken == 0 {
		return nil
	}
	return &pipeline.ReadError{Index: name.Position, Key: "a", Cause: errDisk}
}

// damage changes a byte of a finished batch.
func (n *simulatedNode) damage(batch []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lying > 0 {
		batch[len(batch)/3] ^= 4
	}
}

// silence is when the node was frozen; zero: it is not, or there is none.
func (n *simulatedNode) silence() time.Time {
	if n == nil {
		return time.Time{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.frozen == 0 {
		return time.Time{}
	}
	return n.frozenAt
}

// lied reports whether the node has sent wrong bytes on purpose.
func (n *simulatedNode) lied() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.liar
}

// connect makes a trainer's connection to the node.
func (n *simulatedNode) connect(ctx context.Context, up, down time.Duration) (net.Conn, error) {
	n.mu.Lock()
	swallowed, run := n.hole > 0, n.run
	if n.refusing > 0 {
		run = nil
	}
	n.mu.Unlock()
	switch {
	case swallowed:
		<-ctx.Done()
		return nil, ctx.Err()
	case run == nil:
		return nil, fmt.Errorf("dial %s: connection refused", n.addr)
	}
	far, err := run.listener.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	near, end := net.Pipe()
	l := newLink(end, far, up, down, &n.world.running)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links = append(n.links, l)
	n.links.set(n)
	return near, nil
}

// cut breaks all connections.
func (n *simulatedNode) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.links {
		l.cut()
	}
	n.links = nil
}

// links are connections to one node.
type links []*link

// narrowLink is what a byte takes on a slow link: 40 kB/s.
const narrowLink = 25 * time.Microsecond

func (l links) set(n *simulatedNode) {
	perByte := time.Duration(0)
	if n.narrow > 0 {
		perByte = narrowLink
	}
	for _, one := range l {
		one.set(n.frozen > 0, perByte)
	}
}
