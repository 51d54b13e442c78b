package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// small is a data set of 103 pictures.
func small() *servertest.Engine { return &servertest.Engine{Samples: 103, Height: 16, Width: 16} }

func TestStreamIsTheSameForAnyNodesAndBatches(t *testing.T) {
	c := newCluster(t)
	for _, addr := range []string{"a", "b", "c"} {
		c.start(addr, small(), server.Options{})
	}
	want := digest(t, newLoader(t, loader.Options{Options: c.options("a"), Batch: 103, Window: 1}), 3)
	for _, nodes := range [][]string{{"b"}, {"a", "b", "c"}} {
		for _, batch := range []int{1, 10, 64, 1000} {
			l := newLoader(t, loader.Options{Options: c.options(nodes...), Batch: batch})
			if got := digest(t, l, 3); got != want {
				t.Errorf("%d nodes, batches of %d: %s, want %s", len(nodes), batch, got, want)
			}
		}
	}
	if got := digest(t, newLoader(t, loader.Options{Options: c.options("a"), Batch: 10}), 2); got == want {
		t.Error("other epochs have the same digest")
	}
}

func TestRaggedStream(t *testing.T) {
	c := newCluster(t)
	e := small()
	e.Ragged = true
	c.start("a", e, server.Options{})
	want := digest(t, newLoader(t, loader.Options{Options: c.options("a"), Batch: 103}), 2)
	if got := digest(t, newLoader(t, loader.Options{Options: c.options("a"), Batch: 7}), 2); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Batches that outgrow their memory leave no more of it behind, however many there were.
func TestRaggedStreamKeepsNoMoreMemory(t *testing.T) {
	c := newCluster(t)
	e := small()
	e.Ragged = true
	c.start("a", e, server.Options{})
	l := newLoader(t, loader.Options{Options: c.options("a"), Batch: 7, Window: 3})
	for range 10 {
		digest(t, l, 1)
		if n := l.FreeSlots(); n > 4 {
			t.Fatalf("memory of %d batches is kept where 3 are wanted at once", n)
		}
	}
}

// Ranks, batch sizes and tails: every position of the epoch is delivered as order.Epoch says.
func TestRanks(t *testing.T) {
	c := newCluster(t)
	c.start("a", small(), server.Options{})
	for _, o := range []loader.Options{
		{Ranks: 4, Batch: 8}, {Ranks: 4, Batch: 8, Tail: order.Drop}, {Ranks: 4, Batch: 8, Tail: order.Valid}, {Ranks: 2, Batch: 20, Steps: 7},
	} {
		seen := map[int64]int{}
		steps := uint64(0)
		for rank := range o.Ranks {
			o.Options, o.Rank = c.options("a"), rank
			l := newLoader(t, o)
			n := uint64(0)
			for b, err := range l.Batches(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				for _, i := range b.Indices()[:b.Valid] {
					seen[i]++
				}
				n++
				b.Release()
			}
			if n != l.Steps() || rank > 0 && n != steps {
				t.Errorf("rank %d had %d steps of %d", rank, n, l.Steps())
			}
			steps = n
		}
		want := map[order.Tail]int{"": 103, order.Drop: 96, order.Valid: 103}[o.Tail]
		if len(seen) != want {
			t.Errorf("%v: %d samples, want %d", o.Tail, len(seen), want)
		}
	}
}

func TestResume(t *testing.T) {
	c := newCluster(t)
	c.start("a", small(), server.Options{})
	c.start("b", small(), server.Options{})
	whole := digest(t, newLoader(t, loader.Options{Options: c.options("a"), Batch: 10}), 3)
	for stop := range 11 {
		first := newLoader(t, loader.Options{Options: c.options("a", "b"), Batch: 10})
		d := loader.NewDigest()
		digestInto(t, d, first, 1, -1)
		digestInto(t, d, first, 1, stop)
		text, err := json.Marshal(first.State())
		if err != nil || len(text) > 1000 {
			t.Fatalf("state of %d bytes, %v", len(text), err)
		}
		first.Close()
		var state loader.State
		if err := json.Unmarshal(text, &state); err != nil {
			t.Fatal(err)
		}
		second := newLoader(t, loader.Options{Options: c.options("b"), Batch: 7})
		if err := second.Restore(state); err != nil {
			t.Fatal(err)
		}
		if s := second.State(); !reflect.DeepEqual(s, state) {
			t.Errorf("restored %v as %v", state, s)
		}
		if stop < 11 {
			digestInto(t, d, second, 1, -1)
		}
		if s := second.State(); s.Epoch == 2 && s.Consumed == 0 {
			digestInto(t, d, second, 1, -1)
		}
		if got := fmt.Sprintf("%d %s", d.Samples(), d.Sum()); got != whole {
			t.Errorf("stopped at step %d: %s, want %s (%+v)", stop, got, whole, second.State())
		}
	}
}

// digestInto adds some passes, the last one cut after stop batches if that is not negative.
func digestInto(t *testing.T, d *loader.Digest, l *loader.Loader, passes, stop int) {
	t.Helper()
	for range passes {
		n := 0
		if stop == 0 {
			return
		}
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Add(b); err != nil {
				t.Fatal(err)
			}
			b.Release()
			if n++; n == stop {
				break
			}
		}
	}
}

func TestResumeRefusesOtherRuns(t *testing.T) {
	c := newCluster(t)
	c.start("a", small(), server.Options{})
	l := newLoader(t, loader.Options{Options: c.options("a"), Batch: 10})
	digest(t, l, 1)
	good := l.State()
	for name, change := range map[string]func(*loader.State){
		"version": func(s *loader.State) { s.Version = 9 },
		"order":   func(s *loader.State) { s.OrderHash = "x" },
		"pixels":  func(s *loader.State) { s.PixelHash = "x" },
	} {
		s := good
		change(&s)
		var wrong *loader.StateError
		if err := l.Restore(s); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", name, err)
		}
		late := newLoader(t, loader.Options{Options: c.options("a"), Batch: 10})
		err := late.Restore(s)
		if err == nil {
			_, err = late.Open(t.Context())
		}
		if !errors.As(err, &wrong) {
			t.Errorf("%s, before open: %v", name, err)
		}
	}
	if err := l.Restore(good); err != nil {
		t.Error(err)
	}
}

// Kills, cut connections and freezes while an epoch runs: not a byte changes.
func TestStreamSurvivesFaults(t *testing.T) {
	engine := func() *servertest.Engine {
		return &servertest.Engine{Samples: 3000, Height: 32, Width: 32, Delay: func(n *batch.Name) time.Duration {
			return time.Duration(1+n.Position%7) * time.Millisecond
		}}
	}
	calm := newCluster(t)
	calm.start("a", engine(), server.Options{})
	want := digest(t, newLoader(t, loader.Options{Options: calm.options("a"), Batch: 20}), 3)
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			c := newCluster(t)
			nodes := map[string]*servedNode{}
			addrs := []string{"a", "b", "c"}
			for _, addr := range addrs {
				nodes[addr] = c.start(addr, engine(), server.Options{})
			}
			done := make(chan struct{})
			var faults sync.WaitGroup
			faults.Go(func() { disturb(c, nodes, addrs, rand.New(rand.NewPCG(seed, 0)), engine, done) })
			got := digest(t, newLoader(t, loader.Options{Options: c.options(addrs...), Batch: 20}), 3)
			close(done)
			faults.Wait()
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// disturb breaks one node after the other, and lets it come back.
func disturb(c *cluster, nodes map[string]*servedNode, addrs []string, r *rand.Rand, engine func() *servertest.Engine, done <-chan struct{}) {
	for {
		addr := addrs[r.IntN(len(addrs))]
		n := nodes[addr]
		switch r.IntN(3) {
		case 0:
			n.kill()
			pause(r, done)
			nodes[addr] = c.start(addr, engine(), server.Options{})
		case 1:
			n.cut()
		case 2:
			n.freeze(true)
			pause(r, done)
			n.freeze(false)
		}
		pause(r, done)
		select {
		case <-done:
			return
		default:
		}
	}
}

func pause(r *rand.Rand, done <-chan struct{}) {
	select {
	case <-time.After(time.Duration(r.IntN(100)) * time.Millisecond):
	case <-done:
	}
}

// Bytes that change on the way are noticed and fetched again.
func TestFlippedBits(t *testing.T) {
	c := newCluster(t)
	for _, addr := range []string{"a", "b"} {
		c.start(addr, &servertest.Engine{Samples: 300, Height: 64, Width: 64}, server.Options{})
	}
	want := digest(t, newLoader(t, loader.Options{Options: c.options("a"), Batch: 20}), 1)
	r := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	flips := 0
	o := c.options("a", "b")
	connect := o.Dialing.Connect
	o.Dialing.Connect = func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := connect(ctx, addr)
		if w, ok := conn.(*wire); ok && addr == "a" {
			w.flip = func(b []byte) {
				mu.Lock()
				defer mu.Unlock()
				if len(b) > 10_000 && flips < 20 && (flips == 0 || r.IntN(20) == 0) { // the first one for sure
					b[len(b)/2] ^= 1 << r.IntN(8)
					flips++
				}
			}
		}
		return conn, err
	}
	if got := digest(t, newLoader(t, loader.Options{Options: o, Batch: 20}), 1); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	mu.Lock()
	defer mu.Unlock()
	if flips == 0 {
		t.Error("nothing was flipped")
	}
}

func TestReleaseTwicePanics(t *testing.T) {
	if !loader.Checked {
		t.Log("released batches are checked under the race detector")
		return
	}
	c := newCluster(t)
	c.start("a", small(), server.Options{})
	l := newLoader(t, loader.Options{Options: c.options("a"), Batch: 10})
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		pix := b.Images()
		b.Release()
		if pix[0] != 0xdb || pix[len(pix)-1] != 0xdb {
			t.Error("released memory keeps its bytes")
		}
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		b.Release()
	}
}

// A consumer that keeps batches does not stop the others, and what it keeps stays as it is.
func TestKeptBatches(t *testing.T) {
	c := newCluster(t)
	c.start("a", small(), server.Options{})
	l := newLoader(t, loader.Options{Options: c.options("a"), Batch: 10, Window: 3})
	var kept []*loader.Batch
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, b)
	}
	if len(kept) != 11 || l.Lent() != 11 {
		t.Errorf("%d batches, %d lent", len(kept), l.Lent())
	}
	d := loader.NewDigest()
	for _, b := range kept {
		if err := d.Add(b); err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	want := digest(t, newLoader(t, loader.Options{Options: c.options("a"), Batch: 10}), 1)
	if got := fmt.Sprintf("%d %s", d.Samples(), d.Sum()); got != want || l.Lent() != 0 {
		t.Errorf("%s, want %s; %d lent", got, want, l.Lent())
	}
}

// An error is delivered at its place, and the next call tries again from there.
func TestErrorsComeInOrder(t *testing.T) {
	c := newCluster(t)
	broken := true
	var mu sync.Mutex
	e := small()
	e.Fail = func(n *batch.Name) error {
		mu.Lock()
		defer mu.Unlock()
		if broken && n.Position == 30 {
			return &pipeline.SampleError{Index: 33, Key: "a", Op: "decode", Cause: errors.New("damaged")}
		}
		return nil
	}
	c.start("a", e, server.Options{})
	l := newLoader(t, loader.Options{Options: c.options("a"), Batch: 10})
	d := loader.NewDigest()
	pass := func() (n int, last error) {
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				return n, err
			}
			if err := d.Add(b); err != nil {
				t.Fatal(err)
			}
			b.Release()
			n++
		}
		return n, nil
	}
	var sample *node.SampleError
	if n, err := pass(); n != 3 || !errors.As(err, &sample) {
		t.Errorf("%d batches, then %v", n, err)
	}
	if s := l.State(); s.Consumed != 30 {
		t.Errorf("the cursor is at %d", s.Consumed)
	}
	if n, err := pass(); n != 0 || !errors.As(err, &sample) {
		t.Errorf("again %d batches, then %v", n, err)
	}
	mu.Lock()
	broken = false
	mu.Unlock()
	if n, err := pass(); n != 8 || err != nil {
		t.Errorf("repaired: %d batches, then %v", n, err)
	}
	want := digest(t, newLoader(t, loader.Options{Options: c.options("a"), Batch: 10}), 1)
	if got := fmt.Sprintf("%d %s", d.Samples(), d.Sum()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Wants run ahead into the next epoch, and not beyond the last one.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var mu sync.Mutex
		made := map[string]int{}
		e := small()
		e.Fail = func(n *batch.Name) error {
			mu.Lock()
			defer mu.Unlock()
			made[fmt.Sprint(n.Epoch, "/", n.Position)]++
			return nil
		}
		c.start("a", e, server.Options{})
		l := newLoader(t, loader.Options{Options: c.options("a"), Batch: 50, Window: 4, Epochs: 2})
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
			time.Sleep(time.Second)
			mu.Lock()
			if b.Position == 0 && len(made) != 4 {
				t.Errorf("%d batches were made at the first: %v", len(made), made)
			}
			mu.Unlock()
		}
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
		}
		l.Close()
		if len(made) != 6 || made["1/100"] != 1 {
			t.Errorf("made %v", made)
		}
	})
}

func TestLoaderRefuses(t *testing.T) {
	for _, o := range []loader.Options{{Batch: 0}, {Batch: 1, Rank: 1}, {Batch: 1, Ranks: 2, Rank: -1}, {Batch: 1, Tail: "x"}} {
		if _, err := loader.New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	c := newCluster(t)
	c.start("a", small(), server.Options{})
	l := newLoader(t, loader.Options{Options: c.options("a"), Batch: 200, Tail: order.Drop})
	for b, err := range l.Batches(t.Context()) {
		if err == nil || b != nil {
			t.Errorf("an epoch without steps gives %v, %v", b, err)
		}
	}
	if _, err := node.Dial("example.org:7070", node.DialOptions{}); err == nil {
		t.Error("plaintext to another machine is taken")
	}
	for addr, o := range map[string]node.DialOptions{
		"example.org:7070": {Insecure: true}, "127.0.0.1:1": {}, "[::1]:1": {}, "localhost:1": {}, "unix:/tmp/x": {},
	} {
		if _, err := node.Dial(addr, o); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if _, err := node.Dial("127.0.0.1", node.DialOptions{Insecure: true}); err == nil {
		t.Error("an address without a port is taken")
	}
}
