// Package watch answers Watch: what a process knows of jobs, nodes and GPUs, again and again, for `feedwater top`, the
// page and /metrics. It gathers what others keep (pulse, machine, the process's own nodes) and lets verdict judge it.
// It keeps nothing between two answers but the counters that rates are made of, and starts no goroutine: each watcher
// is served by its caller's.
package watch

import (
	"context"
	"math"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch/machine"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

// Options of a Source.
type Options struct {
	// Kind of the process: "node" or "agent".
	Kind    string
	Version string
	// Cores that the process may use.
	Cores float64
	// Registry of what trainers tell.
	Registry *pulse.Registry
	// Nodes begins to watch the nodes that this process knows: what it returns tells how they are, with rates since it
	// was called last.
	Nodes func(time.Time) func(time.Time) []*pb.NodeStatus
	// Attempts, if set, are a rank's latest wants, by job's name and rank.
	Attempts func(now time.Time) map[Rank][]*pb.Attempt
	// Efforts, if set, are what was done for a rank to have its batches in time.
	Efforts func() map[Rank]*pb.Effort
	// GPUs, if set, are those of this machine, as they were told last.
	GPUs func() []*pb.GpuStatus
	// Wanted, if set, tells how many nodes would feed a job, 0 if that is unknown, and whether that is an upper bound.
	Wanted func(pulse.Job) (nodes int, secondsPerSample float64, upperBound bool)
}

// Rank names one rank of a job.
type Rank struct {
	Job, Plan string
	Rank      uint32
}

// Source is what there is to watch of a process.
type Source struct {
	options Options
	host    string
	began   time.Time
}

// New returns a source.
func New(o Options) *Source {
	host, _ := os.Hostname() // for people; they live without
	return &Source{options: o, host: pulse.CleanName(host), began: time.Now()}
}

// Watcher makes one watcher's answers. It is used by one goroutine at a time.
type Watcher struct {
	source *Source
	before machine.Reading
	nodes  func(time.Time) []*pb.NodeStatus
}

// NewWatcher begins to watch: rates are over the time between two calls of Next, and since Begin at first.
func (s *Source) NewWatcher(now time.Time) *Watcher {
	return &Watcher{source: s, before: machine.Read(now), nodes: s.options.Nodes(now)}
}

// Next is the state now.
func (w *Watcher) Next(now time.Time) *pb.WatchResponse {
	s := w.source
	reading := machine.Read(now)
	r := &pb.WatchResponse{Process: s.processState(reading, w.before), Nodes: w.nodes(now)}
	w.before = reading
	if s.options.GPUs != nil {
		r.Gpus = s.options.GPUs()
	}
	s.addJobs(r, now)
	pulse.SortByWaste(r.Jobs)
	return r
}

func (s *Source) processState(now, before machine.Reading) *pb.Process {
	busy := now.RateSince(before, func(r machine.Reading) float64 { return r.Process })
	if math.IsNaN(busy) {
		busy = 0
	}
	return &pb.Process{
		Host: s.host, Kind: s.options.Kind, Version: s.options.Version, Pid: uint32(os.Getpid()),
		Uptime: durationpb.New(now.At.Sub(s.began)), Cores: s.options.Cores, BusyCores: busy, ResidentBytes: now.Resident,
		HostBusy:                     valueOrNil(now.ShareSince(before, func(r machine.Reading) float64 { return r.Busy })),
		HostIoWait:                   valueOrNil(now.ShareSince(before, func(r machine.Reading) float64 { return r.IOWait })),
		DiskReadBytesPerSecond:       valueOrNil(now.RateSince(before, func(r machine.Reading) float64 { return r.DiskRead })),
		NetworkReceiveBytesPerSecond: valueOrNil(now.RateSince(before, func(r machine.Reading) float64 { return r.Received })),
	}
}

func valueOrNil(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func (s *Source) addJobs(r *pb.WatchResponse, now time.Time) {
	var attempts map[Rank][]*pb.Attempt
	if s.options.Attempts != nil {
		attempts = s.options.Attempts(now)
	}
	var efforts map[Rank]*pb.Effort
	if s.options.Efforts != nil {
		efforts = s.options.Efforts()
	}
	ready := countReady(r.Nodes)
	for _, j := range s.options.Registry.Jobs(now) {
		job := j.Status(now)
		job.Nodes = uint32(ready)
		if s.options.Wanted != nil {
			n, seconds, bound := s.options.Wanted(j)
			if job.UpperBound = bound; n > 0 {
				wanted := uint32(n)
				job.NodesWanted = &wanted
			}
			if seconds > 0 {
				job.SecondsPerSample = &seconds
			}
		}
		for _, rank := range job.Ranks {
			key := Rank{j.Name, j.Plan, rank.Rank}
			rank.Attempts, rank.Effort = attempts[key], efforts[key]
		}
		judgeJob(job, j.Steps(), s.sumPool(r), machineFacts(r, s.options.Kind == "agent"))
		r.Jobs = append(r.Jobs, job)
	}
}

func countReady(nodes []*pb.NodeStatus) int {
	n := 0
	for _, node := range nodes {
		if node.State == "ready" {
			n++
		}
	}
	return n
}

const (
	standard, shortest, longest = time.Second, 100 * time.Millisecond, time.Minute
	// first is how long the first answer takes at most: rates need some time.
	firstWithin = 200 * time.Millisecond
)

// Interval is the time between two answers that a request asks for.
func Interval(r *pb.WatchRequest) (time.Duration, error) {
	if r.GetInterval() == nil {
		return standard, nil
	}
	d := r.Interval.AsDuration()
	if r.Interval.CheckValid() != nil || d < shortest || d > longest {
		return 0, status.Errorf(codes.InvalidArgument, "interval: %s is not within %s to %s", d, shortest, longest)
	}
	return d, nil
}

// Serve answers one Watch call until ctx ends, over closes, or send fails.
func (s *Source) Serve(ctx context.Context, over <-chan struct{}, r *pb.WatchRequest, send func(*pb.WatchResponse) error) error {
	interval, err := Interval(r)
	if err != nil {
		return err
	}
	w := s.NewWatcher(time.Now())
	wait := time.NewTimer(min(firstWithin, interval))
	defer wait.Stop()
	for {
		select {
		case now := <-wait.C:
			if err := send(w.Next(now)); err != nil {
				return err
			}
			wait.Reset(interval)
		case <-over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
