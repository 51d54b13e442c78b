package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/pipeline/revision"
)

// fault is something bad that happens to a run.
type fault struct {
	number    int
	kind      kind
	node      int
	at, lasts time.Duration
}

func (f *fault) String() string {
	if f.kind.everywhere {
		return fmt.Sprintf("%s, for %s", f.kind.name, f.lasts)
	}
	return fmt.Sprintf("%s %s, for %s", addr(f.node), f.kind.name, f.lasts)
}

// kind is what happens. run does it, and undoes it before it returns.
type kind struct {
	name       string
	everywhere bool // not to one node
	refuses    bool // the node is there and does not do what it is asked; the first node never does that: if all do, a run may end
	longest    time.Duration
	run        func(*world, *simulatedNode, *fault)
}

const (
	draining   = "drains"
	hanging    = "hangs"
	otherCodec = "comes back with another codec"
)

// kinds are all there are.
func kinds() []kind {
	return []kind{
		{"is slow", false, false, 4 * time.Second, during(func(n *simulatedNode, by int) { n.slow += by })},
		{hanging, false, false, 40 * time.Second, hang},
		{"cannot read", false, true, 3 * time.Second, during(func(n *simulatedNode, by int) { n.broken += by })},
		{"sends wrong bytes", false, true, 3 * time.Second, lie},
		{"is cut off again and again", false, false, 2 * time.Second, cutOff},
		{"is frozen", false, false, 20 * time.Second, frozen},
		{"has a slow link", false, false, 5 * time.Second, trickle},
		{"refuses connections", false, false, 5 * time.Second, refuse},
		{"swallows connections", false, false, 8 * time.Second, swallow},
		{"is killed", false, false, 3 * time.Second, killed},
		{draining, false, false, 3 * time.Second, drain},
		{"comes back with other data", false, true, 3 * time.Second, otherData},
		{"comes back with other numerics", false, true, 3 * time.Second, otherNumerics},
		{otherCodec, false, true, 3 * time.Second, otherBuild(revision.Codec("png"))},
		{"comes back with another resize", false, true, 3 * time.Second, otherBuild(revision.Batch)},
		{"membership flaps", true, false, 2 * time.Second, flap},
		{"membership is empty", true, false, 2 * time.Second, empty},
		{"membership lies", true, false, 2 * time.Second, nowhere},
		{"all nodes are killed", true, false, 3 * time.Second, everyone(killed)},
		{"all nodes are frozen", true, false, 15 * time.Second, everyone(frozen)},
		{"training stands still", true, false, 20 * time.Second, pause},
	}
}

// during holds a node in a state.
func during(set func(n *simulatedNode, by int)) func(*world, *simulatedNode, *fault) {
	return func(_ *world, n *simulatedNode, f *fault) {
		n.change(func() { set(n, 1) })
		time.Sleep(f.lasts)
		n.change(func() { set(n, -1) })
	}
}

func hang(_ *world, n *simulatedNode, f *fault) {
	n.change(func() { n.hangs = later(n.hangs, time.Now().Add(f.lasts)) })
	time.Sleep(f.lasts)
}

func lie(w *world, n *simulatedNode, f *fault) {
	n.change(func() { n.liar = true })
	during(func(n *simulatedNode, by int) { n.lying += by })(w, n, f)
}

func frozen(w *world, n *simulatedNode, f *fault) {
	during(func(n *simulatedNode, by int) {
		if n.frozen += by; n.frozen == 1 && by > 0 {
			n.frozenAt = time.Now()
		}
		n.links.set(n)
	})(w, n, f)
}

func trickle(w *world, n *simulatedNode, f *fault) {
	during(func(n *simulatedNode, by int) { n.narrow += by; n.links.set(n) })(w, n, f)
}

// A node that refuses connections has lost those it had, or they would not matter.
func refuse(w *world, n *simulatedNode, f *fault) {
	n.cut()
	during(func(n *simulatedNode, by int) { n.refusing += by })(w, n, f)
}

func swallow(w *world, n *simulatedNode, f *fault) {
	n.cut()
	during(func(n *simulatedNode, by int) { n.hole += by })(w, n, f)
}

func cutOff(w *world, n *simulatedNode, f *fault) {
	r := drawn(w.seed, "cuts", f.number)
	for until := time.Now().Add(f.lasts); time.Now().Before(until); {
		n.cut()
		time.Sleep(between(r, time.Millisecond, 400*time.Millisecond))
	}
}

func killed(_ *world, n *simulatedNode, f *fault) {
	n.stop(false)
	time.Sleep(f.lasts)
	n.start()
}

// drain ends a node in order, at another's leisure: what is left after a while is broken off.
func drain(_ *world, n *simulatedNode, f *fault) {
	n.stop(true)
	time.Sleep(f.lasts)
	n.start()
}

func otherData(_ *world, n *simulatedNode, f *fault) {
	n.restart(func() { n.content = "other pictures" })
	time.Sleep(f.lasts)
	n.restart(func() { n.content = "" })
}

func otherNumerics(_ *world, n *simulatedNode, f *fault) {
	n.restart(func() { n.digest = "other numerics" })
	time.Sleep(f.lasts)
	n.restart(func() { n.digest = "" })
}

// otherBuild is one that has a unit in another revision. What a plan uses keeps a node out of the job, a codec from
// files of its format.
func otherBuild(unit string) func(*world, *simulatedNode, *fault) {
	return func(_ *world, n *simulatedNode, f *fault) {
		n.restart(func() {
			n.build = revision.Build()
			n.build[unit]++
		})
		time.Sleep(f.lasts)
		n.restart(func() { n.build = nil })
	}
}

// flap takes a node from the list and puts it back.
func flap(w *world, n *simulatedNode, f *fault) {
	r := drawn(w.seed, "flaps", f.number)
	for until := time.Now().Add(f.lasts); time.Now().Before(until); {
		w.setNodes(without(w.addrs(), n.addr))
		time.Sleep(between(r, time.Millisecond, 300*time.Millisecond))
		w.setNodes(w.addrs())
		time.Sleep(between(r, time.Millisecond, 300*time.Millisecond))
	}
}

func empty(w *world, _ *simulatedNode, f *fault) {
	w.setNodes(nil)
	time.Sleep(f.lasts)
	w.setNodes(w.addrs())
}

// nowhere lists one node that is, one that is not and one that never answers.
func nowhere(w *world, n *simulatedNode, f *fault) {
	w.setNodes([]string{"nobody", n.addr, "hole"})
	time.Sleep(f.lasts)
	w.setNodes(w.addrs())
}

func without(addrs []string, addr string) []string {
	return slices.DeleteFunc(slices.Clone(addrs), func(a string) bool { return a == addr })
}

// everyone does the same to all nodes, a little apart.
func everyone(do func(*world, *simulatedNode, *fault)) func(*world, *simulatedNode, *fault) {
	return func(w *world, _ *simulatedNode, f *fault) {
		all := make(chan struct{})
		for _, n := range w.nodes {
			go func() {
				time.Sleep(between(drawn(w.seed, "apart", f.number, n.addr), 0, 20*time.Millisecond))
				do(w, n, f)
				all <- struct{}{}
			}()
		}
		for range w.nodes {
			<-all
		}
	}
}

// pause is an evaluation, or a trainer that is stopped: it takes no batches.
func pause(w *world, _ *simulatedNode, f *fault) {
	w.mu.Lock()
	w.paused = later(w.paused, time.Now().Add(f.lasts))
	w.mu.Unlock()
	time.Sleep(f.lasts)
}

// setNodes tells all fleets that are open: first of the nodes that come, then of one less at a time, for what goes at
// one instant goes in no order. So no fleet knows less, meanwhile, than the old list or the new one says.
func (w *world) setNodes(addrs []string) {
	w.mu.Lock()
	fleets, listed := slices.Clone(w.fleets), w.listed
	w.listed = addrs
	w.mu.Unlock()
	for _, f := range fleets {
		left := slices.Clone(addrs)
		for _, old := range listed {
			if !slices.Contains(addrs, old) {
				left = append(left, old)
			}
		}
		w.tell(f, left)
		for _, gone := range slices.Backward(listed) { // the first node, which never refuses, goes last
			if !slices.Contains(addrs, gone) {
				left = without(left, gone)
				w.tell(f, left)
			}
		}
	}
}

func (w *world) tell(f *client.Fleet, addrs []string) {
	if err := f.SetNodes(addrs); err != nil {
		w.fail("nodes %v: %v", addrs, err)
	}
	time.Sleep(1013 * time.Nanosecond)
}

// disturb runs the faults and returns when all are over.
func (w *world) disturb(ctx context.Context) {
	over := make(chan struct{})
	for i := range w.faults {
		f := &w.faults[i]
		go func() {
			defer func() { over <- struct{}{} }()
			select {
			case <-time.After(f.at):
			case <-ctx.Done(): // the run is over before
				return
			}
			w.record("fault: %s", f)
			f.kind.run(w, w.nodes[f.node], f)
			w.record("over: %s", f)
		}()
	}
	for range w.faults {
		<-over
	}
}
