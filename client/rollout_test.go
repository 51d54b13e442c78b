package client_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// startBuild runs a node of some build; numerics, if set, are pretended.
func (c *cluster) startBuild(addr, root, version, numerics string) *servedNode {
	c.t.Helper()
	p, err := pipeline.Open(pipeline.Options{Workers: 1})
	if err != nil {
		c.t.Fatal(err)
	}
	engine := server.NewEngine(p, dataset.Options{CacheDir: filepath.Join(c.root, addr)})
	if numerics != "" {
		engine = otherNumerics{engine, engine.(server.Storer), numerics}
	}
	return c.serve(addr, server.Options{
		Version: version, Engine: engine, Roots: map[string]string{"photos": root},
	}, p.Close)
}

// otherNumerics is an engine that pretends to compute differently.
type otherNumerics struct {
	server.Engine
	server.Storer
	numerics string
}

func (e otherNumerics) Numerics() string { return e.numerics }

// Three nodes are drained and replaced, one after the other, by those of another build, while a job runs; one of the
// new ones makes other pixels. The stream is that of one node alone, and nothing fails.
func TestRollingUpgrade(t *testing.T) {
	root := folder(t)
	c := newCluster(t)
	c.startReal("alone", root)
	want := digest(t, newLoader(t, loader.Options{Options: c.realOptions(crops, "alone"), Batch: 4}), 4)
	addrs := []string{"a", "b", "c"}
	for _, addr := range addrs {
		c.startBuild(addr, root, "v1", "")
	}
	l := newLoader(t, loader.Options{Options: c.realOptions(crops, addrs...), Batch: 4, Epochs: 4})
	becomes := func(addr string, state client.NodeState) {
		c.until(addr+" is not "+string(state), func() bool { return slices.Contains(strings.Fields(members(l.Fleet(), state)), addr) })
	}
	upgrade := func(addr, numerics string) {
		old := c.nodes[addr]
		if err := old.server.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		old.kill()
		becomes(addr, client.Down) // or what is seen next may be the old one
		c.startBuild(addr, root, "v2", numerics)
		if numerics != "" {
			becomes(addr, client.LeftOut)
		} else {
			becomes(addr, client.Ready)
		}
	}
	d := loader.NewDigest()
	batch := 0
	for range 4 {
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Add(b); err != nil {
				t.Fatal(err)
			}
			b.Release()
			switch batch {
			case 3:
				c.await(l.Fleet(), 3)
				upgrade("a", "")
			case 15:
				upgrade("b", strings.Repeat("ab", 16))
			case 30:
				upgrade("c", "")
			}
			batch++
		}
	}
	if got := d.Sum(); !strings.HasSuffix(want, got) {
		t.Errorf("%s, not %s", got, want)
	}
	made := map[string]uint64{}
	for _, s := range l.Fleet().Status() {
		made[s.Addr] = s.Batches
		if s.Failures+s.Damaged > 0 {
			t.Errorf("%s failed %d times", s.Addr, s.Failures+s.Damaged)
		}
		if s.Addr != "b" && s.State != client.Ready {
			t.Errorf("%s is %s: %v", s.Addr, s.State, s.Err)
		}
		if s.Addr == "b" && (s.Err == nil || !strings.Contains(s.Err.Error(), "numerics")) {
			t.Errorf("b is left out for %v", s.Err)
		}
	}
	if made["a"]+made["c"] == 0 { // since they came back; one may have made all
		t.Errorf("batches by node %v", made)
	}
	if log := c.log.String(); !strings.Contains(log, `msg="node left out" node=b`) {
		t.Errorf("log:\n%s", log)
	}
}

// Nodes that need a newer trainer, and servers that are no nodes, are left out and named; the others work.
func TestOtherProtocols(t *testing.T) {
	c := newCluster(t)
	c.start("newer", &servertest.Engine{}, server.Options{Protocol: 4, OldestProtocol: 3, Build: "v9 (f00d)"})
	c.start("new", &servertest.Engine{}, server.Options{Protocol: 4, OldestProtocol: 1})
	c.stranger("stranger")
	o := c.options("newer", "stranger")
	o.Build = "v2 (beef)"
	f, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var version *node.VersionError
	_, err = f.Open(t.Context())
	if !errors.As(err, &version) {
		t.Fatalf("error %v", err)
	}
	for _, w := range []string{"newer: left out: the trainer (build v2 (beef)) speaks protocol 2", "this node (build v9 (f00d)) serves none before 3", "stranger: left out: it does not speak feedwater.v1"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not in %v", w, err)
		}
	}
	all := c.options("newer", "new", "stranger")
	g, err := client.New(all)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if _, err := g.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := ask(g, rangeOf(0, 0, 8), room); r.Err != nil || r.Node != "new" {
		t.Errorf("%v from %s", r.Err, r.Node)
	}
	c.until("they are not left out", func() bool { return members(g, client.LeftOut) == "newer stranger" })
	if log := c.log.String(); !strings.Contains(log, `msg="node left out" node=newer`) {
		t.Errorf("log:\n%s", log)
	}
}

// stranger runs something that speaks gRPC and is no node.
func (c *cluster) stranger(addr string) {
	n := &servedNode{
		cluster: c, addr: addr, end: func() {}, server: server.New(server.Options{Engine: &servertest.Engine{}}), grpc: grpc.NewServer(),
		listener: bufconn.Listen(64 << 10), served: make(chan struct{}),
	}
	n.listen()
}

func TestCheckProtocol(t *testing.T) {
	for _, v := range []struct {
		spoken, oldest uint32
		ok             bool
	}{{0, 1, true}, {1, 1, true}, {7, 1, true}, {0, 2, false}, {2, 3, false}, {3, 3, true}} {
		err := client.CheckProtocol(&pb.OpenResponse{Protocol: v.spoken, Version: "v0.9"}, v.oldest, "v1 (abc)")
		var version *node.VersionError
		if v.ok != (err == nil) || err != nil && (!errors.As(err, &version) || !strings.Contains(err.Error(), "(build v0.9)") || !strings.Contains(err.Error(), "(build v1 (abc))")) {
			t.Errorf("%+v: %v", v, err)
		}
	}
}

// While a node that took part is listed no more, those that are left may be the ones that can do nothing: the job waits for it as for a node
// that is down, and no longer.
func TestFitNodeThatIsListedNoMore(t *testing.T) {
	for _, back := range []bool{true, false} {
		t.Run(fmt.Sprint("back=", back), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.start("fit", &servertest.Engine{Digest: "mine"}, server.Options{})
				c.start("stranger", &servertest.Engine{Digest: "other"}, server.Options{})
				o := c.options("fit", "stranger")
				o.Numerics = "mine"
				f, err := client.New(o)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if _, err := f.Open(t.Context()); err != nil {
					t.Fatal(err)
				}
				setNodes(t, f, "stranger")
				result := make(chan client.Result, 1)
				f.Want(&client.Want{Name: rangeOf(0, 0, 8), Request: batch.Request{Dst: make([]byte, room)}, Done: func(r client.Result) { result <- r }})
				began := time.Now()
				time.Sleep(20 * time.Second)
				if len(result) > 0 {
					t.Fatalf("after 20 s without the node: %v", (<-result).Err)
				}
				if back {
					setNodes(t, f, "fit", "stranger")
				}
				r := <-result
				switch after := time.Since(began); {
				case back && r.Err != nil:
					t.Errorf("the node is back: %v", r.Err)
				case !back && (!errors.As(r.Err, new(*node.NumericsError)) || after > 31*time.Second):
					t.Errorf("after %v without the node: %v", after, r.Err)
				}
			})
		})
	}
}

func setNodes(t *testing.T, f *client.Fleet, addrs ...string) {
	t.Helper()
	if err := f.SetNodes(addrs); err != nil {
		t.Fatal(err)
	}
}
