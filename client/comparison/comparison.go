// Package comparison compares the same batches of several nodes, bit for bit: the gate before a rollout. It says where
// they differ. It judges no pixels by itself; the first node is what the others are held against.
//
// Goroutines: Run has some that each want a batch from all nodes and compare, and the fleet of each node; it waits for
// all.
package comparison

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline/revision"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Options of Run.
type Options struct {
	// Plan of the batches, JSON.
	Plan string
	// Nodes by address, two or more.
	Nodes []string
	// Batches to compare, and how many samples each has. Epochs follow each other where one does not have so many.
	Batches, Samples int
	// Timeout bounds the wait for each node's first batch, and for each further one.
	Timeout time.Duration
	// Dialing says how to reach the nodes.
	Dialing node.DialOptions
	// Compared, if set, is called from any goroutine with the number of batches compared so far.
	Compared func(int)
	// Log is told of nodes that come, go and misbehave. Nil: nobody is.
	Log *slog.Logger
}

// Result is what Run found.
type Result struct {
	Nodes []Node `json:"nodes"`
	// Data is the fingerprint of what the batches were made of, on the first node.
	Data string `json:"data"`
	// Batches compared, and the Samples in them.
	Batches int `json:"batches"`
	Samples int `json:"samples"`
	// Differing batches.
	Differing int `json:"differing_batches"`
	// Answers are what already differs in the nodes' answers to the plan: data, numerics, what the plan means.
	Answers []string `json:"answers,omitempty"`
	// Codecs are revisions in which the nodes' codecs differ: a job goes from node to node but for files of these
	// formats.
	Codecs []string `json:"codecs,omitempty"`
	// First is the first difference within batches; nil: there is none.
	First *Difference `json:"first,omitempty"`
}

// Equal reports whether a job could go from any of the nodes to any other, with whatever files.
func (r *Result) Equal() bool { return len(r.Answers) == 0 && len(r.Codecs) == 0 && r.First == nil }

// Node is what a node says of itself.
type Node struct {
	Addr     string `json:"addr"`
	Version  string `json:"version"`
	Build    string `json:"build"`
	Kernels  string `json:"kernels"`
	Numerics string `json:"numerics"`
}

// jobName is what nodes are told that the batches are for.
const jobName = "verify"

// parallelBatches is how many batches are out at each node.
const parallelBatches = 4

// run is one comparison.
type run struct {
	options Options
	fleets  []*client.Fleet
	infos   []*pb.OpenResponse

	mu     sync.Mutex
	next   int // batch
	result Result
}

// Run compares. An error says that it could not: then nothing is known.
func Run(ctx context.Context, o Options) (*Result, error) {
	r := &run{options: o}
	defer r.closeFleets()
	if err := r.openFleets(ctx); err != nil {
		return nil, err
	}
	if !r.compareAnswers(ctx) {
		return &r.result, nil
	}
	workers, ctx := errgroup.WithContext(ctx)
	for range parallelBatches {
		workers.Go(func() error { return r.compareBatches(ctx) })
	}
	if err := workers.Wait(); err != nil {
		return nil, err
	}
	if d := r.result.First; d != nil {
		r.findSample(context.WithoutCancel(ctx), d)
	}
	return &r.result, nil
}

// openFleets opens the plan at all nodes at once.
func (r *run) openFleets(ctx context.Context) error {
	o := &r.options
	for _, addr := range o.Nodes {
		f, err := client.New(client.Options{
			Plan: o.Plan, Job: jobName, Nodes: []string{addr}, StartTimeout: o.Timeout, Timeout: o.Timeout, Dialing: o.Dialing, Log: o.Log,
		})
		if err != nil {
			return err
		}
		r.fleets = append(r.fleets, f)
	}
	r.infos = make([]*pb.OpenResponse, len(r.fleets))
	opening, ctx := errgroup.WithContext(ctx)
	for i, f := range r.fleets {
		opening.Go(func() (err error) {
			r.infos[i], err = f.Open(ctx)
			return err
		})
	}
	if err := opening.Wait(); err != nil {
		return err
	}
	for i, info := range r.infos {
		r.result.Nodes = append(r.result.Nodes, Node{o.Nodes[i], info.Version, info.GetRevisions().GetBuild(), info.Kernels, info.Numerics})
	}
	r.result.Data = r.infos[0].Fingerprint
	return nil
}

func (r *run) closeFleets() {
	for _, f := range r.fleets {
		f.Close()
	}
}

// compareAnswers reports whether there is sense in comparing batches.
func (r *run) compareAnswers(ctx context.Context) bool {
	a, sense := r.infos[0], true
	for i, b := range r.infos[1:] {
		differs := func(format string, args ...any) {
			r.result.Answers = append(r.result.Answers, r.options.Nodes[i+1]+" "+fmt.Sprintf(format, args...))
		}
		if b.Fingerprint != a.Fingerprint {
			differs("has other data: %s", r.fleets[0].Difference(ctx, r.fleets[i+1]))
			sense = false
			continue
		}
		if b.Store == a.Store && b.Versions != a.Versions {
			differs("has other versions of objects in the same bucket, with the same names and sizes: list them anew on both")
			sense = false
			continue
		}
		if b.Numerics != a.Numerics {
			differs("has other numerics (%.12s, not %.12s): jobs that began on the one leave the other out", b.Numerics, a.Numerics)
		}
		for _, unit := range differingUnits(a.GetRevisions().GetPlan(), b.GetRevisions().GetPlan()) {
			differs("has %s: jobs that began on the one leave the other out", revisionsOf(unit, b.GetRevisions().GetPlan(), a.GetRevisions().GetPlan()))
		}
		r.compareCodecs(r.options.Nodes[i+1], b.GetRevisions().GetCodecs(), a.GetRevisions().GetCodecs())
		if b.PlanHash != a.PlanHash {
			differs("takes the plan to mean other batches (hash %.12s, not %.12s)", b.PlanHash, a.PlanHash)
		}
	}
	return sense
}

// compareCodecs notes in which codecs a node differs from the first one.
func (r *run) compareCodecs(node string, theirs, first map[string]uint32) {
	for _, unit := range differingUnits(first, theirs) {
		said := fmt.Sprintf("%s has %s: jobs that began on the one have files of that format made by nodes like it alone", node, revisionsOf(unit, theirs, first))
		r.result.Codecs = append(r.result.Codecs, said)
	}
}

// differingUnits are the units of two builds that are not of the same revision in both.
func differingUnits(a, b revision.Set) []string {
	units := slices.Concat(a.Differing(b), b.Differing(a))
	slices.Sort(units)
	return slices.Compact(units)
}

// revisionsOf tells a unit's revision in a build, and in the one that it is held against.
func revisionsOf(unit string, of, against map[string]uint32) string {
	return fmt.Sprintf("%s of revision %d, not %d", unit, of[unit], against[unit])
}

// compareBatches compares batches until there are no more.
func (r *run) compareBatches(ctx context.Context) error {
	rooms := make([][]byte, len(r.fleets))
	for {
		r.mu.Lock()
		n := r.next
		r.next++
		r.mu.Unlock()
		if n >= r.options.Batches {
			return nil
		}
		if err := r.compareBatch(ctx, n, rooms); err != nil {
			return fmt.Errorf("batch %d: %w", n, err)
		}
	}
}

// compareBatch wants the n-th batch from all nodes. It may use rooms' memory.
func (r *run) compareBatch(ctx context.Context, n int, rooms [][]byte) error {
	name := r.nameOf(n)
	made, err := r.fetchBatch(ctx, name, rooms)
	if err != nil {
		return err
	}
	var first *Difference
	for i := range made[1:] {
		if d := differenceOf(&made[0], &made[i+1]); d != nil && first == nil {
			first = d
			first.Node, first.Batch = r.options.Nodes[i+1], n
			first.Epoch, first.Position = name.Epoch, name.GetRange().Position
		}
	}
	r.addResult(first, int(name.GetRange().Count))
	return nil
}

// nameOf of the n-th batch.
func (r *run) nameOf(n int) *pb.Name {
	all := max(r.infos[0].Samples, 1)
	count := min(uint64(r.options.Samples), all)
	perEpoch := all / count
	position := uint64(n) % perEpoch * count
	return &pb.Name{Epoch: uint32(uint64(n) / perEpoch), Samples: &pb.Name_Range{Range: &pb.Range{Position: position, Count: uint32(count)}}}
}

// fetchBatch returns what each node made, or found not to decode. Any other trouble is an error.
func (r *run) fetchBatch(ctx context.Context, name *pb.Name, rooms [][]byte) ([]client.Result, error) {
	made := make([]client.Result, len(r.fleets))
	var waiting sync.WaitGroup
	for i, f := range r.fleets {
		waiting.Add(1)
		w := &client.Want{Name: name, Request: batch.Request{Dst: rooms[i], Grow: func(bytes int) []byte { return make([]byte, bytes) }}}
		w.Done = func(m client.Result) {
			made[i] = m
			waiting.Done()
		}
		f.Want(w)
		stop := context.AfterFunc(ctx, func() { f.Cancel(w) })
		defer stop()
	}
	waiting.Wait()
	for i := range made {
		if m := &made[i]; m.Err == nil {
			rooms[i] = m.Data
		} else if sample := (*node.SampleError)(nil); !errors.As(m.Err, &sample) {
			return nil, fmt.Errorf("node %s: %w", r.options.Nodes[i], m.Err)
		}
	}
	return made, ctx.Err()
}

// addResult counts a batch; d is nil if it is equal everywhere.
func (r *run) addResult(d *Difference, samples int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Batches++
	r.result.Samples += samples
	if d != nil {
		r.result.Differing++
		if r.result.First == nil || d.Batch < r.result.First.Batch {
			r.result.First = d
		}
	}
	if r.options.Compared != nil {
		r.options.Compared(r.result.Batches)
	}
}

// findSample looks up which sample a difference is about.
func (r *run) findSample(ctx context.Context, d *Difference) {
	if d.Key != "" {
		return
	}
	place := &pb.Range{Position: d.Position + uint64(d.Sample), Count: 1}
	a, err := r.fleets[0].Replay(ctx, &pb.ReplayRequest{Name: &pb.Name{Epoch: d.Epoch, Samples: &pb.Name_Range{Range: place}}})
	if err == nil && len(a.Samples) == 1 {
		d.Key, d.Index = filename.Name(a.Samples[0].Key), a.Samples[0].Index
	}
}
