package scaler_test

import (
	"context"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/proto/externalscaler"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/scaler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// starved, as a number of nodes, is that of a job of which it is not known, and whose loops wait.
const starved = math.MaxUint32

// fakeNode answers Watch with jobs, by name or name#plan.
type fakeNode struct {
	pb.UnimplementedFeedServer
	mu   sync.Mutex
	jobs map[string]uint32
	slow float64 // seconds per sample; 0: it does not say
	// gets is the samples per second of each job; 0: it does not say.
	gets float64
	// bounds tells that its numbers are upper bounds.
	bounds bool
	hung   bool
	cut    chan struct{} // closed: calls that are open hear nothing more, and do not end
	ended  chan struct{} // closed: calls that are open end
}

func (n *fakeNode) Watch(r *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.WatchResponse]) error {
	n.mu.Lock()
	cut, ended := n.cut, n.ended
	n.mu.Unlock()
	for {
		n.mu.Lock()
		var jobs []*pb.JobStatus
		for name, wanted := range n.jobs {
			name, plan, _ := strings.Cut(name, "#")
			j := &pb.JobStatus{Job: name, Plan: plan, UpperBound: wanted == starved || n.bounds}
			if wanted != starved {
				j.NodesWanted = proto.Uint32(wanted)
			}
			if n.slow > 0 {
				j.SecondsPerSample = proto.Float64(n.slow)
			}
			if n.gets > 0 {
				j.Supply = proto.Float64(n.gets)
			}
			jobs = append(jobs, j)
		}
		hung := n.hung
		n.mu.Unlock()
		if !hung {
			if err := stream.Send(&pb.WatchResponse{Jobs: jobs}); err != nil {
				return err
			}
		}
		select {
		case <-time.After(r.Interval.AsDuration()):
		case <-ended:
			return nil
		case <-cut:
			<-stream.Context().Done()
			return nil
		case <-stream.Context().Done():
			return nil
		}
	}
}

// lose has all that watch hear nothing more, as from a machine that lost its power.
func (n *fakeNode) lose() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.cut)
	n.cut = make(chan struct{})
}

// end ends the calls of all that watch, as a node does that drains.
func (n *fakeNode) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.ended)
	n.ended = make(chan struct{})
}

func (n *fakeNode) set(jobs map[string]uint32, hung bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.jobs, n.hung = jobs, hung
}

// world is nodes and a scaler on listeners in memory.
type world struct {
	t         *testing.T
	mu        sync.Mutex
	dialed    map[string]int
	fakes     map[string]*fakeNode
	listeners map[string]*bufconn.Listener
	scaler    *scaler.Scaler
	keda      externalscaler.ExternalScalerClient
}

func (w *world) connect(ctx context.Context, addr string) (net.Conn, error) {
	w.mu.Lock()
	l := w.listeners[addr]
	w.dialed[addr]++
	w.mu.Unlock()
	if l == nil {
		return nil, net.ErrClosed
	}
	return l.DialContext(ctx)
}

func (w *world) dial(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(w.connect))
}

func (w *world) serve(addr string, register func(*grpc.Server)) {
	g, l := grpc.NewServer(), bufconn.Listen(1<<16)
	register(g)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Serve(l)
	}()
	w.mu.Lock()
	w.listeners[addr] = l
	w.mu.Unlock()
	w.t.Cleanup(func() { g.Stop(); <-done })
}

func (w *world) node(addr string) *fakeNode {
	n := &fakeNode{cut: make(chan struct{}), ended: make(chan struct{})}
	w.serve(addr, func(g *grpc.Server) { pb.RegisterFeedServer(g, n) })
	w.fakes[addr] = n
	return n
}

func (w *world) nodes(context.Context) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for addr := range w.listeners {
		if addr != "scaler" {
			all = append(all, addr)
		}
	}
	slices.Sort(all)
	return all, nil
}

func newWorld(t *testing.T) *world { return newWorldOf(t, func(*world) {}) }

// newWorldOf is a world whose nodes are there before the scaler begins.
func newWorldOf(t *testing.T, populate func(*world)) *world {
	w := &world{t: t, listeners: map[string]*bufconn.Listener{}, dialed: map[string]int{}, fakes: map[string]*fakeNode{}}
	populate(w)
	w.scaler = scaler.New(scaler.Options{Nodes: w.nodes, Dial: w.dial})
	w.serve("scaler", func(g *grpc.Server) { w.scaler.Register(g) })
	conn, err := w.dial("scaler")
	if err != nil {
		t.Fatal(err)
	}
	w.keda = externalscaler.NewExternalScalerClient(conn)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.scaler.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait(); conn.Close() })
	time.Sleep(time.Second / 2) // what a test changes from now on, it changes between two looks of the scaler, which come each full second
	return w
}

func (w *world) metric() int {
	w.t.Helper()
	r, err := w.keda.GetMetrics(w.t.Context(), &externalscaler.GetMetricsRequest{MetricName: scaler.Metric})
	if err != nil {
		w.t.Fatal(err)
	}
	return int(r.MetricValues[0].MetricValueFloat)
}

// With no nodes and no trainers none are wanted. The first trainer that waits is heard at once, by KEDA's stream too.
func TestFromNoNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stream, err := w.keda.StreamIsActive(t.Context(), &externalscaler.ScaledObjectRef{})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := stream.Recv(); err != nil || r.Result {
			t.Fatalf("at first %v, %v", r, err)
		}
		if !strings.Contains(scrape(t, w.scaler), "feedwater_scaler_streams 1\n") {
			t.Error("no metric tells of the stream")
		}
		time.Sleep(time.Minute)
		if n := w.metric(); n != 0 {
			t.Errorf("%d nodes for nobody", n)
		}
		leave := w.firstTrainer(stream)
		time.Sleep(5 * time.Minute) // it waits on
		if n := w.metric(); n != 1 {
			t.Errorf("%d nodes for a trainer that waits", n)
		}
		leave()
		time.Sleep(4 * time.Minute)
		if n := w.metric(); n != 0 {
			t.Errorf("%d nodes after it left", n)
		}
	})
}

// KEDA takes the last node away when it was told of no trainer for its cooldownPeriod, also while that node is wanted yet. The next trainer is heard at
// once then too.
func TestFromNoNodesWhileOneIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, func(w *world) { w.node("a").set(nil, false) })
		stream, err := w.keda.StreamIsActive(t.Context(), &externalscaler.ScaledObjectRef{})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := stream.Recv(); err != nil || r.Result {
			t.Fatalf("at first %v, %v", r, err)
		}
		w.mu.Lock()
		delete(w.listeners, "a")
		w.mu.Unlock()
		time.Sleep(46 * time.Second)
		if n := w.metric(); n != 1 {
			t.Fatalf("%d nodes are kept", n)
		}
		w.firstTrainer(stream)()
	})
}

// told is a scaler that a trainer tells.
type told struct{ node.Node }

func (s told) Tell(ctx context.Context, r *pb.OpenRequest) error { return node.TellScaler(ctx, s, r) }

// firstTrainer is a trainer that waits for a node, of which KEDA's stream has to tell within 3 s. What it returns ends it.
func (w *world) firstTrainer(stream grpc.ServerStreamingClient[externalscaler.IsActiveResponse]) (leave func()) {
	w.t.Helper()
	dialing := node.DialOptions{Connect: w.connect}
	knock, err := node.Dial("scaler", dialing)
	if err != nil {
		w.t.Fatal(err)
	}
	f, err := client.New(client.Options{Plan: `{}`, Nodes: []string{"nobody"}, Dialing: dialing, Scaler: told{knock}})
	if err != nil {
		w.t.Fatal(err)
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Minute)
	go func() { _, _ = f.Open(ctx) }()
	if r, err := stream.Recv(); err != nil || !r.Result {
		w.t.Fatalf("the first trainer: %v, %v", r, err)
	}
	if took := time.Since(began); took > 3*time.Second {
		w.t.Errorf("it took %s", took)
	}
	return func() { cancel(); f.Close() }
}

// Each job counts once, as the node says that hears it best; jobs add up; growth is bounded, and what is wanted no more
// goes after 120 s.
func TestJobsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.node("a"), w.node("b")
		a.set(map[string]uint32{"x": 2, "y": 1}, false)
		b.set(map[string]uint32{"x": 1}, false)
		time.Sleep(time.Minute)
		if n := w.metric(); n != 3 {
			t.Errorf("%d nodes, want 3", n)
		}
		a.set(map[string]uint32{"x": 100}, false)
		time.Sleep(25 * time.Second)
		if n := w.metric(); n < 7 || n > 14 {
			t.Errorf("%d nodes: 3, 7, 14 ... is as fast as it goes", n)
		}
		time.Sleep(2 * time.Minute)
		if n := w.metric(); n != 100 {
			t.Errorf("%d nodes, want 100", n)
		}
		a.set(map[string]uint32{"x": 2}, false)
		time.Sleep(100 * time.Second)
		if n := w.metric(); n != 100 {
			t.Errorf("%d nodes before two minutes are over", n)
		}
		time.Sleep(time.Minute)
		if n := w.metric(); n != 2 {
			t.Errorf("%d nodes, want 2", n)
		}
	})
}

// A job whose loops wait, and of which nobody knows what it takes, gets half as many nodes again each 15 s, until
// somebody knows, or there are four times those that have come.
func TestStarvedJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.node("a"), w.node("b")
		a.set(map[string]uint32{"x": starved}, false)
		b.set(map[string]uint32{"x": starved}, false)
		time.Sleep(65 * time.Second)
		if n := w.metric(); n != 8 {
			t.Errorf("%d nodes after a minute: 2, 3, 5, 8, and no more than four times those that are there", n)
		}
		b.set(map[string]uint32{"x": 5}, false)
		time.Sleep(3 * time.Minute)
		if n := w.metric(); n != 5 {
			t.Errorf("%d nodes when a node knows that 5 are wanted", n)
		}
	})
}

// A node that is five times slower wants as many as if all were; there are as many as the mean speed asks for.
// A number is not waited for where all that were asked for are there and say that more are needed.
func TestGrowthWithNodesThatCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, func(w *world) { w.node("a").set(map[string]uint32{"x": 3}, false) })
		began := time.Now()
		await := func(n int, within time.Duration) {
			t.Helper()
			for w.metric() < n {
				if time.Since(began) > within {
					t.Fatalf("%d nodes after %s, not %d", w.metric(), time.Since(began), n)
				}
				time.Sleep(100 * time.Millisecond)
			}
		}
		time.Sleep(time.Second)
		await(3, 2*time.Second)
		for _, addr := range []string{"b", "c"} {
			w.node(addr).set(map[string]uint32{"x": 4}, false)
		}
		began = time.Now()
		await(4, 8*time.Second)
		w.node("d").set(map[string]uint32{"x": starved}, false)
		time.Sleep(14 * time.Second)
		if n := w.metric(); n != 4 {
			t.Errorf("%d nodes while the newest knows nothing yet", n)
		}
	})
}

// The node that came last has seen no step of the time before it, in which there were too few.
func TestNewestNodeSeesNoWaiting(t *testing.T) {
	for _, sees := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			a := w.node("a")
			a.set(map[string]uint32{"x": 3}, false)
			time.Sleep(20 * time.Second)
			b, c := w.node("b"), w.node("c")
			for n, bounds := range map[*fakeNode]bool{a: true, b: !sees, c: !sees} {
				n.mu.Lock()
				n.jobs, n.bounds = map[string]uint32{"x": 3}, bounds
				n.mu.Unlock()
			}
			time.Sleep(30 * time.Second)
			if n := w.metric(); sees != (n == 3) {
				t.Errorf("the newest node sees the demand: %t: %d nodes", sees, n)
			}
		})
	}
}

// A job that waits, of which nobody knows for what, gets more nodes only while those that there are have no time left.
func TestNodesWithSpareTime(t *testing.T) {
	for _, gets := range []float64{229, 280} { // of 300 that three nodes make
		synctest.Test(t, func(t *testing.T) {
			w := newWorldOf(t, func(w *world) {
				for _, addr := range []string{"a", "b", "c"} {
					n := w.node(addr)
					n.slow, n.gets, n.bounds = 0.01, gets, true
					n.set(map[string]uint32{"x": 3}, false)
				}
			})
			time.Sleep(time.Minute)
			if n, spare := w.metric(), gets < 260; spare != (n == 3) {
				t.Errorf("%.0f samples per second of three nodes that make 300: %d nodes", gets, n)
			}
		})
	}
}

// Nodes that make one another slower say that more are needed, again and again.
func TestNodesThatShareAMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []*fakeNode
		w := newWorldOf(t, func(w *world) {
			n := w.node("a")
			n.slow = 0.01
			n.set(map[string]uint32{"x": 3}, false)
			all = append(all, n)
		})
		time.Sleep(20 * time.Second)
		for count := 2; count <= 20; count++ {
			all = append(all, w.node(string(rune('a'+count))))
			for _, n := range all {
				n.mu.Lock()
				n.slow = 0.01 * float64(count)
				n.jobs = map[string]uint32{"x": uint32(3 * count)}
				n.mu.Unlock()
			}
			time.Sleep(20 * time.Second)
			if n := w.metric(); n != 3 {
				t.Fatalf("%d nodes after %d that make no more together than one", n, count)
			}
		}
	})
}

func TestSlowNodeDoesNotSpeakForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.node("a"), w.node("b")
		a.slow, b.slow = 0.1, 0.5
		b.set(map[string]uint32{"x": 15}, false)
		time.Sleep(5 * time.Second)
		a.set(map[string]uint32{"x": 3}, false)
		time.Sleep(10 * time.Minute) // what was wanted while b alone was heard is forgotten
		if n := w.metric(); n != 5 {
			t.Errorf("%d nodes, want 5", n)
		}
	})
}

// An evaluation beside a training of the same name wants nodes of its own.
func TestPlansOfOneNameAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.node("a"), w.node("b")
		a.set(map[string]uint32{"x#training": 3}, false)
		b.set(map[string]uint32{"x#training": 2, "x#evaluation": 1}, false)
		time.Sleep(time.Minute)
		if n := w.metric(); n != 4 {
			t.Errorf("%d nodes, want 4", n)
		}
	})
}

// A node that answers no more is replaced as long as it is listed. Where no node answers nothing is known, and that is
// no 0.
func TestSilentNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b *fakeNode
		w := newWorldOf(t, func(w *world) {
			a, b = w.node("a"), w.node("b")
			a.set(nil, true)
			b.set(nil, true)
		})
		time.Sleep(time.Minute)
		if _, err := w.keda.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{}); status.Code(err) != codes.Unavailable {
			t.Errorf("no node answers: %v", err)
		}
		a.set(map[string]uint32{"x": 2}, false)
		b.set(map[string]uint32{"x": 2}, false)
		time.Sleep(time.Minute)
		if n := w.metric(); n != 2 {
			t.Errorf("%d nodes, want 2", n)
		}
		b.set(nil, true)
		time.Sleep(time.Minute)
		if n := w.metric(); n != 3 {
			t.Errorf("%d nodes with one silent, want 3", n)
		}
	})
}

// A node whose connection died without a word is reached by another one, and its jobs count again.
func TestLostConnectionsAreMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.node("a")
		a.set(map[string]uint32{"x": 2}, false)
		time.Sleep(time.Minute)
		a.lose()
		time.Sleep(time.Second)
		a.set(map[string]uint32{"x": 4}, false)
		time.Sleep(time.Minute)
		w.mu.Lock()
		dialed := w.dialed["a"]
		w.mu.Unlock()
		if n := w.metric(); n != 4 || dialed != 2 {
			t.Errorf("%d nodes wanted, want 4; %d connections, want 2", n, dialed)
		}
	})
}
