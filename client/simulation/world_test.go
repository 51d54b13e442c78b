package simulation

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
)

// world is one run of a scenario.
type world struct {
	*scenario
	root  string       // a folder
	calm  loader.State // what the run is pinned to: a calm one's
	began time.Time
	nodes []*simulatedNode
	stop  context.CancelFunc

	running sync.WaitGroup // goroutines of links

	mu     sync.Mutex
	wrong  []string // what broke a promise
	trace  []event
	stream map[place]record
	last   map[string]place // of each rank
	fleets []*client.Fleet
	listed []string // nodes, as fleets were told
	ranks  []*trainer
	paused time.Time
	final  loader.State
	logged bytes.Buffer
	dead   []*running
	hoards map[held]time.Time // of observe: since when a node that is frozen holds more than one want
}

// event is something that happened.
type event struct {
	at   time.Duration
	what string
}

func (e event) String() string { return fmt.Sprintf("%-14s %s", e.at, e.what) }

func newWorld(s *scenario, root string, calm loader.State) *world {
	w := &world{scenario: s, root: root, calm: calm, began: time.Now(), stream: map[place]record{}, last: map[string]place{}, hoards: map[held]time.Time{}}
	for i := range s.nodes {
		w.nodes = append(w.nodes, newNode(w, i))
	}
	return w
}

// play runs the scenario within a bubble of virtual time and returns when nothing of it runs any more.
func (w *world) play() {
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	for i, n := range w.nodes {
		time.Sleep(time.Duration(i) * 1009 * time.Nanosecond)
		n.start()
	}
	w.listed = w.addrs()
	var rest sync.WaitGroup
	rest.Go(func() { w.disturb(ctx) })
	rest.Go(func() { w.observe(ctx) })
	w.train(ctx)
	stop()
	rest.Wait()
	for _, n := range w.nodes {
		n.stop(false)
	}
	w.running.Wait()
	w.checkMemory()
}

// train runs the phases, each from the state that the ranks of the one before have agreed on.
func (w *world) train(ctx context.Context) {
	var state *loader.State
	for number, p := range w.phases {
		states := make([]loader.State, p.ranks)
		var running sync.WaitGroup
		for rank := range p.ranks {
			t := w.newTrainer(number, rank, p)
			w.change(func() { w.ranks = append(w.ranks, t) })
			running.Go(func() {
				time.Sleep(time.Duration(rank) * 100_003 * time.Nanosecond)
				states[rank] = t.run(ctx, state, p.steps)
			})
		}
		running.Wait()
		for _, s := range states {
			if !reflect.DeepEqual(s, states[0]) {
				w.fail("ranks do not agree on where they are: %+v and %+v", s, states[0])
			}
		}
		if ctx.Err() != nil {
			return
		}
		state = &states[0]
	}
	w.final = *state
}

// complete reports whether a state is the end of the run.
func (w *world) complete(s loader.State) bool {
	return s.Epoch >= w.shape.epochs || s.Epoch == w.shape.epochs-1 && s.Consumed >= uint64(w.shape.samples)
}

func (w *world) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

func (w *world) opened(f *client.Fleet) { w.change(func() { w.fleets = append(w.fleets, f) }) }

func (w *world) closing(f *client.Fleet) {
	w.blamed(f)
	w.change(func() { w.fleets = slices.DeleteFunc(w.fleets, func(one *client.Fleet) bool { return one == f }) })
}

func (w *world) buried(r *running) { w.change(func() { w.dead = append(w.dead, r) }) }

func (w *world) pausedUntil() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.paused
}

func (w *world) node(addr string) *simulatedNode {
	for _, n := range w.nodes {
		if n.addr == addr {
			return n
		}
	}
	return nil
}

// addrs are those of all nodes.
func (w *world) addrs() []string {
	var all []string
	for _, n := range w.nodes {
		all = append(all, n.addr)
	}
	return all
}

// record notes what happens.
func (w *world) record(format string, args ...any) {
	w.change(func() { w.trace = append(w.trace, event{time.Since(w.began), fmt.Sprintf(format, args...)}) })
}

// fail notes that a promise was broken, and ends the run.
func (w *world) fail(format string, args ...any) {
	w.change(func() {
		w.wrong = append(w.wrong, fmt.Sprintf("after %s: ", time.Since(w.began))+fmt.Sprintf(format, args...))
	})
	w.stop()
}

// log is where a client writes.
func (w *world) log(who string) *slog.Logger {
	return slog.New(slog.NewTextHandler(logWriter{w}, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.String("at", time.Since(w.began).String())
		}
		return a
	}})).With("of", who)
}

type logWriter struct{ world *world }

func (l logWriter) Write(b []byte) (n int, err error) {
	l.world.change(func() { n, err = l.world.logged.Write(b) })
	return n, err
}

// events is the trace, those of one instant in the order of their texts: in which order goroutines ran is not decided.
func (w *world) events() []event {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.trace)
	slices.SortFunc(all, func(a, b event) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return bytes.Compare([]byte(a.what), []byte(b.what))
	})
	return all
}
