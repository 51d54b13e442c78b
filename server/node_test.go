package server_test

import (
	"context"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const plan = `{"source": {"root": "photos"}}`

// node is a server on a listener in memory.
type node struct {
	*server.Server
	t        testing.TB
	engine   *servertest.Engine
	grpc     *grpc.Server
	listener *bufconn.Listener
	served   chan error
}

// newNode starts a node. At the end of the test everything has to be given back.
func newNode(t testing.TB, e *servertest.Engine, o server.Options) *node {
	t.Helper()
	if o.Roots == nil {
		o.Roots = map[string]string{"photos": t.TempDir()}
	}
	o.Engine = e
	n := &node{Server: server.New(o), t: t, engine: e, listener: bufconn.Listen(256 << 10), served: make(chan error, 1)}
	n.grpc = grpc.NewServer(n.GRPCOptions()...)
	n.Register(n.grpc)
	go func() { n.served <- n.grpc.Serve(n.listener) }()
	t.Cleanup(n.stop)
	return n
}

func (n *node) stop() {
	n.grpc.Stop()
	n.Close()
	n.engine.Close()
	<-n.served
	if k := n.engine.Open(); k != 0 {
		n.t.Errorf("%d snapshots are open at the end", k)
	}
}

// settled waits until nothing is lent any more.
func (n *node) settled() {
	n.t.Helper()
	until(n.t, "slots are still lent", func() bool { _, lent := n.Memory(); return lent == 0 })
}

// counted is what all series of a metric come to.
func (n *node) counted(name string) int {
	n.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(n)
	families, err := registry.Gather()
	if err != nil {
		n.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "feedwater_node_"+name {
			sum := 0.0
			for _, m := range f.Metric {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
			return int(sum)
		}
	}
	n.t.Fatalf("no metric %s", name)
	return 0
}

// until waits for something that tells nobody when it happens.
func until(t testing.TB, otherwise string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(otherwise)
		}
	}
}

// conn is a stock gRPC client's connection.
func (n *node) conn(options ...grpc.DialOption) *grpc.ClientConn {
	n.t.Helper()
	c, err := grpc.NewClient("passthrough:///node", append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return n.listener.DialContext(ctx) }))...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { c.Close() })
	return c
}

func (n *node) open(text string) *pb.OpenResponse {
	n.t.Helper()
	r, err := n.Open(n.t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: text})
	if err != nil {
		n.t.Fatal(err)
	}
	return r
}

// trainer is one Fetch stream of a stock client.
type trainer struct {
	t      testing.TB
	stream pb.Feed_FetchClient
	cancel context.CancelFunc
}

func (n *node) fetch(c *grpc.ClientConn) *trainer {
	n.t.Helper()
	return fetch(n.t, c)
}

func fetch(t testing.TB, c *grpc.ClientConn) *trainer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	s, err := pb.NewFeedClient(c).Fetch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &trainer{t, s, cancel}
}

// started is a stream whose Start was sent.
func (n *node) started() *trainer {
	n.t.Helper()
	tr := n.fetch(n.conn())
	tr.start(n.open(plan).Plan)
	return tr
}

func (tr *trainer) send(r *pb.FetchRequest) {
	tr.t.Helper()
	if err := tr.stream.Send(r); err != nil && !errors.Is(err, io.EOF) { // EOF: the reason comes with the next answer
		tr.t.Fatal(err)
	}
}

func (tr *trainer) start(text string) {
	tr.t.Helper()
	tr.send(&pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: text}}})
}

func rangeOf(epoch uint32, position uint64, count uint32) *pb.Name {
	return &pb.Name{Epoch: epoch, Samples: &pb.Name_Range{Range: &pb.Range{Position: position, Count: count}}}
}

func wantOf(id uint64, n *pb.Name) *pb.FetchRequest {
	return &pb.FetchRequest{Request: &pb.FetchRequest_Want{Want: &pb.Want{Id: id, Name: n}}}
}

func cancelOf(id uint64) *pb.FetchRequest {
	return &pb.FetchRequest{Request: &pb.FetchRequest_Cancel{Cancel: &pb.Cancel{Id: id}}}
}

func (tr *trainer) want(id uint64, n *pb.Name) {
	tr.t.Helper()
	tr.send(wantOf(id, n))
}

// answer is a whole batch or a failure.
type answer struct {
	id      uint64
	header  *pb.Header
	data    []byte
	pieces  int
	failure *pb.Failure
	notices []*pb.Notice // that came before
}

// next receives one answer and checks the rules of pieces.
func (tr *trainer) next() (*answer, error) {
	a := &answer{}
	for {
		m, err := tr.stream.Recv()
		if err != nil {
			return a, err
		}
		switch {
		case m.Notice != nil:
			a.notices = append(a.notices, m.Notice)
			continue
		case m.Failure != nil:
			a.id, a.failure = m.Id, m.Failure
			return a, nil
		case a.pieces == 0:
			a.id, a.header = m.Id, m.Header
		}
		if m.Id != a.id || m.Offset != uint64(len(a.data)) || (m.Header != nil) != (a.pieces == 0) || len(m.Data) == 0 {
			tr.t.Fatalf("piece %d of batch %d: id %d, offset %d after %d bytes", a.pieces, a.id, m.Id, m.Offset, len(a.data))
		}
		a.pieces++
		a.data = append(a.data, m.Data...)
		if uint64(len(a.data)) == m.Size {
			if crc := crc32.Checksum(a.data, crc32.MakeTable(crc32.Castagnoli)); crc != a.header.Crc32C {
				tr.t.Fatalf("batch %d: checksum %08x, header says %08x", a.id, crc, a.header.Crc32C)
			}
			return a, nil
		}
	}
}

// piece receives one message that is no notice.
func (tr *trainer) piece() *pb.FetchResponse {
	tr.t.Helper()
	for {
		m, err := tr.stream.Recv()
		if err != nil {
			tr.t.Fatal(err)
		}
		if m.Notice == nil {
			return m
		}
	}
}

func (tr *trainer) mustNext() *answer {
	tr.t.Helper()
	a, err := tr.next()
	if err != nil {
		tr.t.Fatal(err)
	}
	return a
}
