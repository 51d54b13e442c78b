package simulation

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// shape is what decides the stream that a run has to deliver.
type shape struct {
	samples, side int // side of the pictures
	epochs        uint32
}

// scenario is all that a seed decides before a run.
type scenario struct {
	seed        uint64
	shape       shape
	nodes       []time.Duration // what a batch takes each of them, about
	batch       int
	window      int // 0: the product's
	step        time.Duration
	held        int   // batches that the loop keeps, released late
	streamBytes int64 // memory of a node for one stream; 0: plenty
	phases      []phase
	faults      []fault
}

// phase is a part of a run: so many ranks take so many steps, or all that are left if it is 0. The next one goes on
// from their state.
type phase struct {
	ranks int
	steps uint64
}

// drawn are random numbers for one purpose.
func drawn(seed uint64, purpose ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, purpose...)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}

// newScenario draws a seed's.
func newScenario(seed uint64) *scenario {
	r := drawn(seed, "scenario")
	s := &scenario{seed: seed, batch: 1 + r.IntN(8), held: 1 + r.IntN(3)}
	s.shape = shape{samples: []int{90, 128, 250}[r.IntN(3)], side: 4, epochs: uint32(1 + r.IntN(2))}
	s.step = between(r, 2*time.Millisecond, 60*time.Millisecond)
	for range 1 + r.IntN(5) {
		s.nodes = append(s.nodes, between(r, 5*time.Millisecond, 60*time.Millisecond))
	}
	switch r.IntN(8) {
	case 0: // batches of several pieces
		s.shape, s.batch = shape{samples: 90, side: 128, epochs: 1}, 6+r.IntN(3)
	case 1, 2: // nodes that have room for two or three wants
		s.streamBytes = int64(2+r.IntN(2)) * 4 << 10
	}
	if r.IntN(3) == 0 {
		s.window = 1 + r.IntN(8)
	}
	for r.IntN(3) == 0 {
		s.phases = append(s.phases, phase{1 + r.IntN(4), uint64(1 + r.IntN(20))})
	}
	s.phases = append(s.phases, phase{ranks: 1 + r.IntN(4)})
	s.drawFaults(r)
	return s
}

// drawFaults draws faults of a few kinds: runs differ more if not all of them have a bit of everything.
func (s *scenario) drawFaults(r *rand.Rand) {
	some := kinds()
	r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	some = some[:1+r.IntN(4)]
	length := max(time.Duration(s.shape.samples/s.batch)*s.step, time.Second)
	for i := range r.IntN(10) {
		k := some[r.IntN(len(some))]
		f := fault{number: i, kind: k, node: r.IntN(len(s.nodes)), at: between(r, 0, length), lasts: between(r, 20*time.Millisecond, k.longest)}
		if !k.refuses || f.node > 0 {
			s.faults = append(s.faults, f)
		}
	}
}

// steady reports whether there is a node that nothing is done to, and that all trainers know of all the time.
func (s *scenario) steady() bool {
	hit := map[int]bool{}
	for _, f := range s.faults {
		if f.kind.everywhere {
			return false
		}
		hit[f.node] = true
	}
	return len(hit) < len(s.nodes)
}

// only reports whether nothing is done to a node but things of one kind.
func (s *scenario) only(node int, kind string) bool {
	return !slices.ContainsFunc(s.faults, func(f fault) bool { return f.kind.everywhere || f.node == node && f.kind.name != kind })
}

// end is when the last fault is over.
func (s *scenario) end() time.Duration {
	last := time.Duration(0)
	for _, f := range s.faults {
		last = max(last, f.at+f.lasts)
	}
	return last
}

func (s *scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "scenario of seed %d: %d samples, %d epochs, batches of %d, window %d, %s per step\n", s.seed, s.shape.samples, s.shape.epochs, s.batch, s.window, s.step)
	for i, d := range s.nodes {
		fmt.Fprintf(&b, "  %s takes about %s for a batch\n", addr(i), d)
	}
	for _, p := range s.phases {
		fmt.Fprintf(&b, "  %d ranks, steps %d\n", p.ranks, p.steps)
	}
	for i := range s.faults {
		fmt.Fprintf(&b, "  at %s: %s\n", s.faults[i].at, &s.faults[i])
	}
	return b.String()
}

func addr(node int) string { return fmt.Sprint("node-", node) }
