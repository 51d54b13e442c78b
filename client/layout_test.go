package client_test

import (
	"context"
	"hash/crc32"
	"net"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/feedwater-io/feedwater/client"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// liar is a node that makes batches of another one's, altered.
type liar struct {
	pb.UnimplementedFeedServer
	honest pb.FeedClient
	opened func(*pb.OpenResponse)
	first  func(*pb.FetchResponse) // the first piece of each batch
}

func (l *liar) Open(ctx context.Context, r *pb.OpenRequest) (*pb.OpenResponse, error) {
	answer, err := l.honest.Open(ctx, r)
	if err == nil && l.opened != nil {
		l.opened(answer)
	}
	return answer, err
}

func (l *liar) Fetch(trainer grpc.BidiStreamingServer[pb.FetchRequest, pb.FetchResponse]) error {
	node, err := l.honest.Fetch(trainer.Context())
	if err != nil {
		return err
	}
	go func() { // ends with the call, at the latest
		for {
			r, err := trainer.Recv()
			if err != nil || node.Send(r) != nil {
				_ = node.CloseSend()
				return
			}
		}
	}()
	for {
		m, err := node.Recv()
		if err != nil {
			return err
		}
		if m.Header != nil && l.first != nil {
			l.first(m)
		}
		if err := trainer.Send(m); err != nil {
			return err
		}
	}
}

// lie starts a liar in front of an honest node.
func (c *cluster) lie(addr string, l *liar) {
	c.start(addr+"-honest", &servertest.Engine{}, server.Options{})
	conn, err := grpc.NewClient("passthrough:///"+addr+"-honest", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return c.connect(ctx, addr) }))
	if err != nil {
		c.t.Fatal(err)
	}
	l.honest = pb.NewFeedClient(conn)
	n := &servedNode{cluster: c, addr: addr, end: func() { conn.Close() }, server: server.New(server.Options{Engine: &servertest.Engine{}}), listener: bufconn.Listen(64 << 10), served: make(chan struct{})}
	n.grpc = grpc.NewServer()
	pb.RegisterFeedServer(n.grpc, l)
	n.listen()
}

// cut makes a whole batch of the first bytes of one, with the checksum of these.
func cut(m *pb.FetchResponse) {
	m.Data = m.Data[:64]
	m.Size = 64
	m.Header.Crc32C = crc32.Checksum(m.Data, crc32.MakeTable(crc32.Castagnoli))
}

// field is the one of that name.
func field(h *pb.Header, name string) *pb.Field {
	return h.Fields[slices.IndexFunc(h.Fields, func(f *pb.Field) bool { return f.Name == name })]
}

// What a node says of a batch must be what the job's batches are: else the batch comes from another node, whatever was
// sent.
func TestBatchesThatAreNoneOfTheJobs(t *testing.T) {
	lies := map[string]func(*pb.FetchResponse){
		"no fields":      func(m *pb.FetchResponse) { m.Header.Fields = nil; cut(m) },
		"a field less":   func(m *pb.FetchResponse) { m.Header.Fields = m.Header.Fields[1:] },
		"a field twice":  func(m *pb.FetchResponse) { m.Header.Fields[0].Name = m.Header.Fields[1].Name },
		"a type":         func(m *pb.FetchResponse) { field(m.Header, "image").Dtype = "int64" },
		"few samples":    func(m *pb.FetchResponse) { field(m.Header, "image").Shape[0]-- },
		"huge samples":   func(m *pb.FetchResponse) { s := field(m.Header, "image").Shape; s[1], s[2] = 1<<31, 1<<31 },
		"small samples":  func(m *pb.FetchResponse) { s := field(m.Header, "image").Shape; s[1], s[2] = 1, 1 },
		"ragged samples": func(m *pb.FetchResponse) { field(m.Header, "image").RaggedOffsets = []uint64{0, 1 << 63} },
		"a place":        func(m *pb.FetchResponse) { field(m.Header, "image").Offset = 1 << 63 },
		"few bytes":      cut,
		"a large batch":  func(m *pb.FetchResponse) { m.Size = 1 << 40 },
		"a huge batch":   func(m *pb.FetchResponse) { m.Size = 1<<63 + 5 },
		"broken samples": func(m *pb.FetchResponse) { m.Header.Errors = []*pb.SampleError{{Offset: 1 << 31}} },
	}
	for name, first := range lies {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.lie("liar", &liar{first: first})
			f := c.open(c.options("liar"))
			c.start("honest", &servertest.Engine{}, server.Options{})
			if err := f.SetNodes([]string{"liar", "honest"}); err != nil {
				t.Fatal(err)
			}
			for i := range uint64(10) {
				r := ask(f, rangeOf(0, i*8, 8), room)
				if r.Err != nil || r.Node != "honest" {
					t.Fatalf("batch %d: %v from %s", i, r.Err, r.Node)
				}
			}
			c.until("the liar is never found out", func() bool { return f.Status()[0].Damaged > 0 })
		})
	}
}

func TestNodesWhoseBatchesMakeNoSense(t *testing.T) {
	lies := map[string]func(*pb.OpenResponse){
		"no fields":   func(r *pb.OpenResponse) { r.Fields = nil },
		"many fields": func(r *pb.OpenResponse) { r.Fields = slices.Repeat(r.Fields, 50) },
		"one twice":   func(r *pb.OpenResponse) { r.Fields[0].Name = r.Fields[1].Name },
		"a type":      func(r *pb.OpenResponse) { r.Fields[0].Dtype = "complex" },
		"a shape":     func(r *pb.OpenResponse) { r.Fields[0].Shape = []uint64{1 << 40, 1 << 40, 3} },
	}
	for name, opened := range lies {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.lie("liar", &liar{opened: opened})
			c.start("honest", &servertest.Engine{}, server.Options{})
			o := c.options("liar", "honest")
			f, err := client.New(o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(f.Close)
			if r, err := f.Open(t.Context()); err != nil || r.Version != "honest" {
				t.Fatalf("%v from %s", err, r.GetVersion())
			}
		})
	}
	c := newCluster(t)
	c.lie("boaster", &liar{opened: func(r *pb.OpenResponse) { r.Workers = 1<<32 - 1 }})
	f := c.open(c.options("boaster"))
	if n := f.Window(1); n > 10_000 {
		t.Errorf("a window of %d batches", n)
	}
}
