package agent

import (
	"math"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/feedwater-io/feedwater/client"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

// Source is what there is to watch of this agent: its Loaders' jobs, the nodes they talk to, their latest wants.
func (a *Agent) Source() *watch.Source { return a.source }

func newSource(a *Agent) *watch.Source {
	return watch.New(watch.Options{
		Kind: "agent", Version: a.options.Build, Cores: a.options.Cores, Registry: &a.registry,
		Nodes: a.watchNodes, Attempts: a.recentAttempts, Efforts: a.effortByRank, GPUs: a.options.GPUs,
	})
}

// openLoaders are the Loaders that have a plan.
func (a *Agent) openLoaders() []*loader {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []*loader
	for l := range a.loaders {
		if l.isOpen() {
			all = append(all, l)
		}
	}
	return all
}

func (l *loader) isOpen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fleet != nil
}

// tally is what a node has delivered to all Loaders so far.
type tally struct{ samples, bytes, decoded, uncopied, kept float64 }

// watchNodes tells of the nodes that any Loader talks to, each once, with rates since it was asked last.
func (a *Agent) watchNodes(began time.Time) func(time.Time) []*pb.NodeStatus {
	before, at := map[string]tally{}, began
	for addr, t := range a.tallyNodes() {
		before[addr] = t
	}
	return func(now time.Time) []*pb.NodeStatus {
		after, seconds := a.tallyNodes(), now.Sub(at).Seconds()
		nodes := a.nodeStatuses()
		for _, n := range nodes {
			if t, b := after[n.Addr], before[n.Addr]; seconds > 0 && t.samples >= b.samples {
				n.SamplesPerSecond, n.BytesPerSecond = (t.samples-b.samples)/seconds, (t.bytes-b.bytes)/seconds
				if decoded := t.decoded - b.decoded; decoded > 0 {
					n.MissingCopies = proto.Float64((t.uncopied - b.uncopied) / decoded)
				}
				if made, kept := t.samples-b.samples, t.kept-b.kept; made > 0 && kept > 0 {
					n.Kept = proto.Float64(kept / made)
				}
			}
		}
		before, at = after, now
		return nodes
	}
}

func (a *Agent) tallyNodes() map[string]tally {
	all := map[string]tally{}
	for _, l := range a.openLoaders() {
		for _, s := range l.fleet.Status() {
			t := all[s.Addr]
			all[s.Addr] = tally{
				t.samples + float64(s.Samples), t.bytes + float64(s.Bytes), t.decoded + float64(s.Decoded), t.uncopied + float64(s.MissingCopies),
				t.kept + float64(s.Kept),
			}
		}
	}
	return all
}

// nodeStatuses are those of all Loaders, without rates.
func (a *Agent) nodeStatuses() []*pb.NodeStatus {
	var all []*pb.NodeStatus
	known := map[string]*pb.NodeStatus{}
	for _, l := range a.openLoaders() {
		for _, s := range l.fleet.Status() {
			n := known[s.Addr]
			if n == nil {
				n = nodeStatus(s)
				known[s.Addr] = n
				all = append(all, n)
				continue
			}
			n.Wants += uint32(s.Wants)
			n.Queued = math.Max(n.Queued, s.Queued)
		}
	}
	return all
}

func nodeStatus(s client.NodeStatus) *pb.NodeStatus {
	n := &pb.NodeStatus{Addr: s.Addr, State: stateOf(s.State), Cores: float64(s.Workers), Queued: s.Queued, Wants: uint32(s.Wants)}
	for _, scan := range s.Scans {
		n.Scans = append(n.Scans, &pb.Scan{
			Folder: pulse.CleanName(scan.GetFolder()), Files: scan.GetFiles(), FilesPerSecond: scan.GetFilesPerSecond(), Running: scan.GetRunning(),
		})
	}
	if s.Err != nil {
		n.Error = pulse.CleanName(watch.Plain(s.Err.Error()))
	}
	return n
}

// stateOf is a state in the words of feedwater.proto.
func stateOf(s client.NodeState) string {
	switch s {
	case client.Busy:
		return "ready"
	case client.Down, client.LeftOut:
		return "failed"
	}
	return string(s)
}

// recentAttempts are the latest wants of each Loader's rank.
func (a *Agent) recentAttempts(now time.Time) map[watch.Rank][]*pb.Attempt {
	all := map[watch.Rank][]*pb.Attempt{}
	for _, l := range a.openLoaders() {
		key, ok := l.rankKey()
		if !ok {
			continue
		}
		for _, t := range l.fleet.Traces() {
			at := &pb.Attempt{Batch: t.Batch, Node: t.Node, Sent: durationpb.New(now.Sub(t.Sent)), Hedge: t.Hedge, State: string(t.State)}
			if !t.Ended.IsZero() {
				at.Ended = durationpb.New(now.Sub(t.Ended))
			}
			all[key] = append(all[key], at)
		}
	}
	return all
}

// effortByRank are those of each Loader's rank.
func (a *Agent) effortByRank() map[watch.Rank]*pb.Effort {
	all := map[watch.Rank]*pb.Effort{}
	for _, l := range a.openLoaders() {
		if key, ok := l.rankKey(); ok {
			e := l.fleet.Effort()
			all[key] = &pb.Effort{
				Batches: e.Batches, Samples: e.Samples, Extra: e.Extra, Hedges: e.Hedges, HedgesWon: e.HedgesWon, Moves: e.Moves, Missed: e.Missed,
			}
		}
	}
	return all
}

// rankKey names the rank that a Loader's pulses are of.
func (l *loader) rankKey() (watch.Rank, bool) {
	l.mu.Lock()
	line, info := l.session, l.info
	l.mu.Unlock()
	if line == nil || info == nil {
		return watch.Rank{}, false
	}
	return watch.Rank{Job: line.Job(), Plan: info.PlanHash, Rank: line.Rank()}, true
}
