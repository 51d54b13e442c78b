package client

import (
	"context"
	"errors"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// NodeStatus is how a node is.
type NodeStatus struct {
	Addr  string
	State NodeState
	// Err is the last error; nil if there was none since it joined.
	Err error
	// Wants it holds of this fleet.
	Wants int
	// Workers it has; 0 while it is not connected.
	Workers int
	// Queued is the core-seconds of work for all jobs that it last told of.
	Queued float64
	// SecondsPerSample by what it says and what was seen; 0: unknown.
	SecondsPerSample float64
	// Batches delivered, Failures of its own, batches that arrived Damaged.
	Batches, Failures, Damaged uint64
	// Samples and Bytes delivered.
	Samples, Bytes uint64
	// Decoded are their pictures that the node says it decoded, MissingCopies those among them that could have had a copy
	// and had none.
	Decoded, MissingCopies uint64
	// Kept are their pictures that it did not decode, since it had kept the pixels.
	Kept uint64
	// Scans are the folders that it lists before it can take part.
	Scans []*pb.Scan
}

// Status tells how the nodes are that the fleet uses, as of at most 0.1 s ago. It never blocks.
func (f *Fleet) Status() []NodeStatus {
	if s := f.statuses.Load(); s != nil {
		return *s
	}
	return nil
}

// Info is what Open returned, nil before.
func (f *Fleet) Info() *pb.OpenResponse { return f.job.info.Load() }

// Trainer is what this side does to batches, as nodes are told of it.
func (f *Fleet) Trainer() *pb.Trainer { return f.job.options.Trainer }

// Pins are what a state holds the job to: revisions, of the open job and of this side, and the stores that its data lies in, with the versions
// there. Nodes that join later may add stores.
func (f *Fleet) Pins() (revisions *Revisions, stores map[string]string) {
	return RevisionsOf(f.job.info.Load(), f.job.options.Trainer), f.job.stores.All()
}

// MoreStores are the stores that Pins tells, with the versions there, if there are more than so many; else nil.
func (f *Fleet) MoreStores(than int) map[string]string {
	if f.job.stores.Count() <= than {
		return nil
	}
	return f.job.stores.All()
}

func (f *Fleet) publishStatus(now time.Time) {
	all := make([]NodeStatus, 0, len(f.roster.live))
	for _, m := range f.roster.members {
		state := m.stateAt(now)
		if state == Unused {
			continue
		}
		one := NodeStatus{
			Addr: m.node.Addr(), State: state, Err: m.lastError(), SecondsPerSample: m.speed.SampleSeconds(),
			Batches: m.batches, Failures: m.failures, Damaged: m.damaged, Samples: m.samples, Bytes: m.bytes,
			Decoded: m.decoded, MissingCopies: m.uncopied, Kept: m.kept, Scans: m.scans,
		}
		if s := m.session; s != nil {
			one.Wants, one.Workers, one.Queued = len(s.attempts), s.workers, s.queued
		}
		all = append(all, one)
	}
	f.statuses.Store(&all)
	effort := f.inFlight.effort
	f.efforts.Store(&effort)
	f.inFlight.traces.publish()
}

// Replay makes samples of the job again on any node that is up, and waits for one for a while where none is. The request's plan, numerics and
// revisions are filled in.
func (f *Fleet) Replay(ctx context.Context, request *pb.ReplayRequest) (*pb.ReplayResponse, error) {
	info := f.job.info.Load()
	if info == nil {
		return nil, errors.New("replay: the fleet is not open")
	}
	nodes, err := f.waitForNodes(ctx)
	if err != nil {
		return nil, err
	}
	failures := &NodesError{}
	for _, n := range nodes {
		r, err := n.Replay(ctx, &pb.ReplayRequest{
			Plan: info.Plan, Numerics: info.Numerics, Revisions: info.Revisions, Stores: f.job.stores.All(),
			Name: request.Name, Pixels: request.Pixels,
		})
		if err == nil {
			return r, nil
		}
		err = node.FromStatus(err)
		var plan *batch.PlanError
		if errors.As(err, &plan) {
			return nil, err
		}
		failures.Nodes = append(failures.Nodes, NodeError{n.Addr(), Ready, err})
	}
	return nil, failures
}

// A replay waits for a node as long as a restart takes, and asks so often whether there is one.
const (
	replayWait  = 10 * time.Second
	replayAgain = 50 * time.Millisecond
)

// replayers are the nodes that a replay may ask now; where there are none, why, and whether that is for good.
type replayers struct {
	nodes   []node.Node
	err     error
	forGood bool
}

// replayersNow are those of this moment.
func (r *roster) replayersNow() replayers {
	if nodes := r.replayNodes(); len(nodes) > 0 {
		return replayers{nodes: nodes}
	}
	if r.allLeftOut() && !r.awaitsReturn(time.Now()) {
		return replayers{err: r.allErrors(), forGood: true}
	}
	return replayers{err: &NodesError{r.nodeErrors()}}
}

// waitForNodes are the nodes that a replay may ask, one at least. The error is that of the nodes where waiting does not help, or did not.
func (f *Fleet) waitForNodes(ctx context.Context) ([]node.Node, error) {
	again := time.NewTicker(replayAgain)
	defer again.Stop()
	for end := time.Now().Add(replayWait); ; {
		reply := make(chan replayers, 1)
		if !f.job.inbox.post(func() { reply <- f.roster.replayersNow() }) {
			return nil, ErrClosed
		}
		r, err := receive(ctx, f, reply)
		if err != nil {
			return nil, err
		}
		if len(r.nodes) > 0 || r.forGood || time.Now().After(end) {
			return r.nodes, r.err
		}
		if _, err := receive(ctx, f, again.C); err != nil {
			return nil, err
		}
	}
}

// receive waits for what comes, until ctx ends or the fleet has stopped.
func receive[T any](ctx context.Context, f *Fleet, from <-chan T) (v T, err error) {
	select {
	case v = <-from:
		return v, nil
	case <-ctx.Done():
		return v, ctx.Err()
	case <-f.stopped:
		return v, ErrClosed
	}
}

// Difference says in words what is the first that differs between the data of this fleet and of another. Both are open,
// and have one node each, named in Options.Nodes.
func (f *Fleet) Difference(ctx context.Context, other *Fleet) string {
	return node.DescribeDifference(ctx, node.Side{Node: only{f}, Info: f.Info()}, node.Side{Node: only{other}, Info: other.Info()})
}

// only is a fleet by the address of its first node.
type only struct{ *Fleet }

// Addr implements node.Replayer.
func (o only) Addr() string { return o.job.options.Nodes[0] }
