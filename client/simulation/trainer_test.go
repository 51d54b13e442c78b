package simulation

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/client/node"
)

// trainer is one rank of one phase: a loop that takes batches, works, and releases them.
type trainer struct {
	world   *world
	name    string
	rank    int
	options loader.Options
	loader  *loader.Loader
	kept    []kept

	mu    sync.Mutex
	dials map[string]int
	since time.Time // when it began to wait; zero: it does not
}

// kept is a batch that was delivered and not released, and what it looked like.
type kept struct {
	batch *loader.Batch
	sum   uint32
}

const plan = `{"source": {"root": "photos"}, "seed": 17}`

func (w *world) newTrainer(number, rank int, p phase) *trainer {
	t := &trainer{world: w, name: fmt.Sprintf("rank %d", rank), rank: rank, dials: map[string]int{}}
	who := fmt.Sprint(number, " ", rank)
	connect := func(ctx context.Context, addr string) (net.Conn, error) { return t.connect(ctx, who, addr) }
	t.options = loader.Options{
		Options: client.Options{
			Plan: plan, Job: "job", Nodes: w.addrs(), Log: w.log(t.name), Seed: w.seed + uint64(rank) + 1,
			Numerics: w.calm.Numerics, Fingerprint: w.calm.Fingerprint, Revisions: w.calm.Revisions.Message(),
			Dialing: node.DialOptions{Connect: connect, PieceBytes: 256 << 10},
		},
		Batch: w.batch, Rank: rank, Ranks: p.ranks, Epochs: w.shape.epochs, Window: w.window,
	}
	return t
}

// connect dials. Every connection has latencies of its own.
func (t *trainer) connect(ctx context.Context, who, addr string) (net.Conn, error) {
	t.mu.Lock()
	t.dials[addr]++
	r := drawn(t.world.seed, "connection", who, addr, t.dials[addr])
	t.mu.Unlock()
	up, down := between(r, 20*time.Microsecond, 3*time.Millisecond), between(r, 20*time.Microsecond, 3*time.Millisecond)
	select {
	case <-time.After(up + down):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch n := t.world.node(addr); {
	case addr == "hole":
		<-ctx.Done()
		return nil, ctx.Err()
	case n == nil:
		return nil, fmt.Errorf("dial %s: nobody is there", addr)
	default:
		return n.connect(ctx, up, down)
	}
}

// run takes so many steps from a state on, 0: all, and returns the state after them.
func (t *trainer) run(ctx context.Context, from *loader.State, steps uint64) loader.State {
	t.waits(true)
	if !t.open(ctx, from) {
		return loader.State{}
	}
	defer t.loader.Close()
	t.world.opened(t.loader.Fleet())
	defer t.world.closing(t.loader.Fleet())
	for taken := uint64(0); !t.world.complete(t.loader.State()) && (steps == 0 || taken < steps); {
		for b, err := range t.loader.Batches(ctx) {
			t.waits(false)
			if err != nil {
				t.world.fail("%s: after %d steps: %v", t.name, taken, err)
				return loader.State{}
			}
			t.take(b)
			if taken++; taken == steps {
				break
			}
			t.waits(true)
		}
		t.waits(!t.world.complete(t.loader.State()) && taken != steps)
	}
	t.waits(false)
	t.release(0)
	if n := t.loader.Lent(); n != 0 {
		t.world.fail("%s: %d batches are lent after all were released", t.name, n)
	}
	return t.loader.State()
}

// open makes a Loader that is open. Where all nodes that answer refuse, Open says so at once; then somebody starts the
// trainer again.
func (t *trainer) open(ctx context.Context, from *loader.State) bool {
	for {
		var err error
		if t.loader, err = loader.New(t.options); err == nil && from != nil {
			err = t.loader.Restore(*from)
		}
		if err != nil {
			t.world.fail("%s: %v", t.name, err)
			return false
		}
		_, err = t.loader.Open(ctx)
		if err == nil {
			return true
		}
		t.loader.Close()
		if refused := (*client.NodesError)(nil); !errors.As(err, &refused) {
			t.world.fail("%s: open: %v", t.name, err)
			return false
		}
		time.Sleep(time.Second)
	}
}

// take notes a batch, keeps it for a while and works a step.
func (t *trainer) take(b *loader.Batch) {
	t.world.delivered(t.rank, t.name, b)
	t.kept = append(t.kept, kept{b, sumOf(b)})
	r := drawn(t.world.seed, "step", t.name, b.Epoch, b.Position)
	time.Sleep(between(r, t.world.step/2, 2*t.world.step))
	time.Sleep(time.Until(t.world.pausedUntil()))
	t.release(t.world.held - 1)
}

// release gives the oldest batches back, down to so many. They have to be as they were.
func (t *trainer) release(keep int) {
	for len(t.kept) > keep {
		k := t.kept[0]
		t.kept = t.kept[1:]
		if sumOf(k.batch) != k.sum {
			t.world.fail("%s: batch %d/%d changed before it was released", t.name, k.batch.Epoch, k.batch.Position)
		}
		k.batch.Release()
	}
}

func sumOf(b *loader.Batch) uint32 {
	sum := uint32(0)
	for _, f := range b.Fields {
		sum = crc32.Update(sum, crc32.IEEETable, b.Bytes(f.Name))
	}
	return sum
}

// waits says whether the loop waits for a batch.
func (t *trainer) waits(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since = time.Time{}
	if on {
		t.since = time.Now()
	}
}

// waited is for how long it has; faults that ended since do not count.
func (t *trainer) waited(calm time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since.IsZero() {
		return 0
	}
	return time.Since(later(t.since, calm))
}
