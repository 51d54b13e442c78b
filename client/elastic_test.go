package client_test

import (
	"crypto/sha256"
	"iter"
	"maps"
	"reflect"
	"testing"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
)

// taken is what a job has of an epoch, by position. A sample that comes twice is an error of the test's.
type taken struct {
	t      *testing.T
	digest map[uint64][sha256.Size]byte
}

func (k *taken) add(b *loader.Batch) {
	k.t.Helper()
	indices, labels := b.Indices(), b.Labels()
	for i := range b.Valid {
		pix, _, _ := b.Image(i)
		at := b.Position + uint64(i)
		if _, twice := k.digest[at]; twice {
			k.t.Errorf("position %d came twice", at)
		}
		k.digest[at] = sha256.Sum256(append([]byte{byte(indices[i]), byte(labels[i])}, pix...))
	}
}

// crash drops what lies behind a checkpoint.
func (k *taken) crash(consumed uint64) {
	maps.DeleteFunc(k.digest, func(at uint64, _ [sha256.Size]byte) bool { return at >= consumed })
}

// world is the ranks of a job, which take their steps together.
type world struct {
	loaders []*loader.Loader
	next    []func() (*loader.Batch, error, bool)
	stop    []func()
}

func newWorld(t *testing.T, o client.Options, ranks int, s loader.State) *world {
	t.Helper()
	w := &world{}
	for rank := range ranks {
		l := newLoader(t, loader.Options{Options: o, Batch: 2, Rank: rank, Ranks: ranks, Epochs: 1})
		if err := l.Restore(s); err != nil {
			t.Fatal(err)
		}
		next, stop := iter.Pull2(l.Batches(t.Context()))
		w.loaders, w.next, w.stop = append(w.loaders, l), append(w.next, next), append(w.stop, stop)
	}
	return w
}

// step takes one batch on each rank; false when the epoch is over, on all of them.
func (w *world) step(k *taken) bool {
	k.t.Helper()
	more := 0
	for _, next := range w.next {
		b, err, ok := next()
		if err != nil {
			k.t.Fatal(err)
		}
		if ok {
			more++
			k.add(b)
			b.Release()
		}
	}
	if more > 0 && more < len(w.next) {
		k.t.Fatalf("%d of %d ranks had a batch", more, len(w.next))
	}
	return more > 0
}

func (w *world) close() {
	for i, l := range w.loaders {
		w.stop[i]()
		l.Close()
	}
}

// A job that crashes and goes on from its last checkpoint with another number of ranks, again and again, on nodes that
// come, go and die meanwhile, gets each sample of the epoch once, and the same pixels as one that runs undisturbed on
// one rank.
func TestElastic(t *testing.T) {
	c, root := newCluster(t), folder(t)
	c.startReal("a", root)
	undisturbed := &taken{t, map[uint64][sha256.Size]byte{}}
	still := newWorld(t, c.realOptions(crops, "a"), 1, loader.State{Version: 1})
	for still.step(undisturbed) {
	}
	still.close()
	if len(undisturbed.digest) != 45 {
		t.Fatalf("the epoch has %d samples", len(undisturbed.digest))
	}

	const every = 2 // steps from one checkpoint to the next
	got := &taken{t, map[uint64][sha256.Size]byte{}}
	state := loader.State{Version: 1}
	for _, part := range []struct {
		ranks, steps int
		nodes        []string
		amid         func(w *world) // before the second step
	}{
		{1, 5, []string{"a", "late"}, func(*world) { c.startReal("late", root) }},
		{4, 3, []string{"a", "late"}, func(*world) { c.nodes["a"].kill() }},
		{2, 3, []string{"late"}, func(w *world) {
			c.startReal("b", root)
			for _, l := range w.loaders {
				if err := l.Fleet().SetNodes([]string{"b", "nobody"}); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{3, 1 << 20, []string{"a", "b"}, func(*world) { c.startReal("a", root) }},
	} {
		w := newWorld(t, c.realOptions(crops, part.nodes...), part.ranks, state)
		got.crash(state.Consumed)
		for step := 0; step < part.steps && w.step(got); step++ {
			if step == 0 {
				part.amid(w)
			}
			if (step+1)%every == 0 {
				state = w.loaders[0].State()
				for rank, l := range w.loaders {
					if !reflect.DeepEqual(l.State(), state) {
						t.Errorf("rank %d of %d is at %+v, rank 0 at %+v", rank, part.ranks, l.State(), state)
					}
				}
			}
		}
		w.close()
	}
	if !maps.Equal(got.digest, undisturbed.digest) {
		t.Errorf("the stream differs: %d positions, undisturbed %d", len(got.digest), len(undisturbed.digest))
	}
}
