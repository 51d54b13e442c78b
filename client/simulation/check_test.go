package simulation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
)

// place is a batch's place in the stream.
type place struct {
	epoch    uint32
	position uint64
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.epoch, q.epoch), cmp.Compare(p.position, q.position))
}

// record is a batch that was delivered: index, label and pixels of each sample that counts.
type record struct {
	samples [][]byte
}

// delivered notes a batch. Within a rank batches come in order.
func (w *world) delivered(rank int, name string, b *loader.Batch) {
	w.record("%s has %d/%d+%d from %s", name, b.Epoch, b.Position, b.Count, b.Node)
	at := place{b.Epoch, b.Position}
	var r record
	indices, labels := b.Indices(), b.Labels()
	for i := range b.Valid {
		pix, _, _ := b.Image(i)
		sample := binary.LittleEndian.AppendUint64(nil, uint64(indices[i]))
		sample = binary.LittleEndian.AppendUint64(sample, uint64(labels[i]))
		r.samples = append(r.samples, append(sample, pix...))
	}
	w.mu.Lock()
	_, twice := w.stream[at]
	last, any := w.last[name]
	w.stream[at], w.last[name] = r, at
	w.mu.Unlock()
	if any && last.compare(at) >= 0 {
		w.fail("rank %d got %d/%d after %d/%d", rank, at.epoch, at.position, last.epoch, last.position)
	}
	if twice && b.Valid > 0 {
		w.fail("%d/%d was delivered twice", at.epoch, at.position)
	}
}

// digest is that of the ordered stream, for when the run is over. Every position has to be there once.
func (w *world) digest() string {
	places := make([]place, 0, len(w.stream))
	for p := range w.stream {
		places = append(places, p)
	}
	slices.SortFunc(places, place.compare)
	h := sha256.New()
	next := place{}
	for _, p := range places {
		if len(w.stream[p].samples) == 0 {
			continue
		}
		if p != next {
			w.wrong = append(w.wrong, fmt.Sprintf("%d/%d comes where %d/%d is next", p.epoch, p.position, next.epoch, next.position))
		}
		for _, s := range w.stream[p].samples {
			h.Write(s)
		}
		if next = (place{p.epoch, p.position + uint64(len(w.stream[p].samples))}); next.position >= uint64(w.shape.samples) {
			next = place{p.epoch + 1, 0}
		}
	}
	if end := (place{w.shape.epochs, 0}); next != end {
		w.wrong = append(w.wrong, fmt.Sprintf("the stream ends before %d/%d", next.epoch, next.position))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// How long a trainer may wait for a batch: while there is a node that nothing is done to, and after all faults are
// over. The first outlasts a silent node several times, the second the longest wait between attempts to reach a node.
const (
	shortPatience = 8 * time.Second
	calmPatience  = 30 * time.Second
)

// patience is the first of them. A want is at two nodes at once, which are given up after 5 s, or 20 times what wants
// take: so long for each pair that hangs.
func (s *scenario) patience() time.Duration {
	hang := map[int]bool{}
	for _, f := range s.faults {
		if f.kind.name == hanging {
			hang[f.node] = true
		}
	}
	return shortPatience * time.Duration(1+len(hang)/2)
}

// mostWants of one stream a node works on: pick.InFlight, for 2 cores, and one that is rescued. The node's mu is held.
func (n *simulatedNode) mostWants() int {
	if n.single {
		return 4 + 1
	}
	return 3 + 1
}

// observe looks at what must hold all the time, until the run is over.
func (w *world) observe(ctx context.Context) {
	calm := w.began.Add(w.end())
	for {
		select {
		case <-time.After(49_999_993 * time.Nanosecond):
		case <-ctx.Done():
			return
		}
		w.checkWaits(calm)
		w.checkWants()
		w.checkSilence()
	}
}

func (w *world) checkWaits(calm time.Time) {
	w.mu.Lock()
	ranks := slices.Clone(w.ranks)
	w.mu.Unlock()
	for _, t := range ranks {
		if d := t.waited(calm); d > calmPatience {
			w.fail("%s has waited for a batch for %s since all faults were over", t.name, d)
		}
		if d := t.waited(w.began); w.steady() && d > w.patience() {
			w.fail("%s has waited for a batch for %s, though there is a node that nothing was done to", t.name, d)
		}
	}
}

func (w *world) checkWants() {
	for _, n := range w.nodes {
		n.mu.Lock()
		making, streams, most := 0, len(n.links), n.mostWants()
		if n.run != nil {
			making = n.run.engine.Making()
		}
		n.mu.Unlock()
		if making > most*streams {
			w.fail("%s holds %d wants for %d connections", n.addr, making, streams)
		}
	}
}

// held is wants of a fleet that are at a node.
type held struct {
	fleet *client.Fleet
	addr  string
}

// quiet is for how long a node may hold wants and say nothing.
const quiet = 2 * time.Second

// checkSilence looks whether wants stay at a node that is frozen. A single one may be a probe.
func (w *world) checkSilence() {
	w.mu.Lock()
	fleets := slices.Clone(w.fleets)
	w.mu.Unlock()
	for _, f := range fleets {
		for _, s := range f.Status() {
			what, since := held{f, s.Addr}, w.node(s.Addr).silence()
			switch began, ok := w.hoards[what]; {
			case since.IsZero() || s.Wants <= 1:
				delete(w.hoards, what)
			case !ok:
				w.hoards[what] = time.Now()
			case time.Since(later(began, since)) > quiet:
				w.fail("%s says nothing, and %d wants stay there", s.Addr, s.Wants)
			}
		}
	}
}

// blamed looks for honest nodes that are said to have sent damage, and for nodes of another build that are said to have
// failed.
func (w *world) blamed(f *client.Fleet) {
	for _, s := range f.Status() {
		if n := w.node(s.Addr); n != nil && s.Damaged > 0 && !n.lied() {
			w.fail("%s is said to have sent %d damaged batches", s.Addr, s.Damaged)
		}
		if n := w.node(s.Addr); n != nil && s.Failures > 0 && w.only(n.index, otherCodec) {
			w.fail("%s is of another build, and is said to have failed %d times: %v", s.Addr, s.Failures, s.Err)
		}
	}
}

// checkMemory looks whether nodes that ended have all their slots back. Some come back by the garbage collector.
func (w *world) checkMemory() {
	for _, r := range w.dead {
		lent := 0.0
		for range 100 {
			if lent = lentBytes(r); lent == 0 {
				break
			}
			runtime.GC()
			runtime.Gosched()
		}
		if lent != 0 {
			w.fail("a node has ended and %.0f bytes are still lent", lent)
		}
	}
}

func lentBytes(r *running) float64 {
	registry := prometheus.NewRegistry()
	registry.MustRegister(r.server)
	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, f := range families {
		if f.GetName() == "feedwater_node_lent_bytes" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	panic("nodes do not tell what they lent")
}
