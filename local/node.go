package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/agent"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/storage"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
)

// localPipelines are the pipelines of an agent's own process, one per number of workers, made when the first Loader needs it.
type localPipelines struct {
	log    *slog.Logger
	cores  *cores
	lists  dataset.Options // where lists of files are kept
	index  *pipeline.Index // nil: none
	tracer trace.Tracer    // nil: none

	made  sync.Once
	roots *storage.Roots // see storage

	mu      sync.Mutex
	servers map[int]*localServer
}

type localServer struct {
	*server.Server
	pipeline *pipeline.Pipeline
}

// storage are the roots of all folders that Loaders read.
func (l *localPipelines) storage() *storage.Roots {
	l.made.Do(func() { l.roots = storage.New(storage.Options{Places: 3 * runtime.GOMAXPROCS(0)}) })
	return l.roots
}

// get returns the server of a pipeline with that many workers; 0: this rank's share of the cores.
func (l *localPipelines) get(workers int) (*localServer, error) {
	if workers <= 0 {
		workers = shareOfCores(l.cores.all)
	}
	l.cores.takeAll()
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.servers[workers]; s != nil {
		return s, nil
	}
	p, err := pipeline.Open(pipeline.Options{Workers: workers, OnPanic: panicLog(l.log), Index: l.index, Storage: l.storage()})
	if err != nil {
		return nil, err
	}
	lists := l.lists
	lists.Progress = scanProgress(l.log)
	s := &localServer{pipeline: p, Server: server.New(server.Options{
		Engine:  server.NewEngine(p, lists),
		AnyPath: true,
		Version: version, Build: buildOf(),
		Tracer: l.tracer,
		Log:    l.log,
	})}
	if l.servers == nil {
		l.servers = map[int]*localServer{}
	}
	l.servers[workers] = s
	return s, nil
}

func (l *localPipelines) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.servers {
		s.Close()
		s.pipeline.Close()
	}
	l.storage().Close()
}

// shareOfCores divides the cores this process may use among the ranks of this host.
func shareOfCores(all int) int {
	ranks, err := strconv.Atoi(os.Getenv("LOCAL_WORLD_SIZE"))
	if err != nil || ranks < 1 {
		ranks = 1
	}
	return max(1, all/ranks)
}

// rankOrProcess tells this trainer from others of its job: its rank, or where launchers set none its process.
func rankOrProcess() int {
	if rank, err := strconv.Atoi(os.Getenv("RANK")); err == nil {
		return rank
	}
	return os.Getppid()
}

// connector makes the fleet of a Loader.
func connector(local *localPipelines) func(context.Context, agent.Plan) (*client.Fleet, error) {
	return func(ctx context.Context, p agent.Plan) (*client.Fleet, error) {
		o, err := local.options(ctx, p)
		if err != nil {
			return nil, err
		}
		return client.New(o)
	}
}

// options are those of a Loader's fleet: its nodes, this process's own pipeline where there are none, or both where the plan says how many
// workers that has beside them.
func (l *localPipelines) options(ctx context.Context, p agent.Plan) (client.Options, error) {
	o := client.Options{
		Plan: string(p.Text), Job: p.Job, Rank: rankOrProcess(), Nodes: p.Nodes, Numerics: p.Numerics, Fingerprint: p.Fingerprint,
		Revisions: p.Revisions, Build: buildOf(),
		StartTimeout: p.StartTimeout, Timeout: p.Timeout,
		Dialing: node.DialOptions{Insecure: p.Insecure, Files: p.TLS, TokenFile: p.TokenFile}, Tracer: l.tracer, Log: p.Log,
	}
	var err error
	if o.Scaler, err = scalerOf(p, o.Dialing); err != nil {
		return o, err
	}
	own := "" // plan of the local node
	if len(p.Nodes) > 0 && p.Local != "" {
		if own, o.Plan, err = l.matchByFingerprint(ctx, p); err != nil {
			return o, err
		}
	}
	if len(p.Nodes) > 0 && (p.Workers == 0 || p.Local == "") {
		return o, nil
	}
	s, err := l.get(p.Workers)
	if err != nil {
		return o, err
	}
	o.Local = &localNode{server: s, plan: own}
	return o, nil
}

// matchByFingerprint turns a plan for a folder of this machine into one that pins what is in it, for this machine, and one for whatever folder
// of the nodes holds the same data.
func (l *localPipelines) matchByFingerprint(ctx context.Context, p agent.Plan) (here, elsewhere string, err error) {
	plan, err := pipeline.ParsePlan(p.Text)
	if err != nil {
		return "", "", err
	}
	flat := plan.Masks != nil
	empty := plan.Source.AllowEmpty
	plan.Source = pipeline.Source{Path: filename.Name(p.Local), AllowEmpty: empty}
	if plan.Source.Fingerprint, err = l.fingerprint(ctx, p.Local, flat, empty); err != nil {
		return "", "", err
	}
	if flat && plan.Masks.Root == "" {
		if plan.Masks.Fingerprint, err = l.fingerprint(ctx, string(plan.Masks.Path), flat, empty); err != nil {
			return "", "", err
		}
	}
	here = string(plan.Canonical())
	plan.Source.Path = ""
	if flat && plan.Masks.Root == "" {
		plan.Masks.Path = ""
	}
	return here, string(plan.Canonical()), nil
}

// fingerprint is that of a folder of this machine.
func (l *localPipelines) fingerprint(ctx context.Context, folder string, flat, empty bool) (string, error) {
	o := l.lists
	o.Flat, o.Empty = flat, empty
	s, err := pipeline.OpenFolder(ctx, l.storage(), folder, o)
	if err != nil {
		return "", &node.DataError{Path: folder, Message: fmt.Sprintf("find %s on the nodes by its fingerprint: %v", folder, err)}
	}
	defer s.Close()
	return s.Fingerprint(), nil
}

// listing is what a folder of this machine holds.
func (l *localPipelines) listing(ctx context.Context, folder string) (found agent.Listing, err error) {
	o := l.lists
	o.Flat, o.Empty = true, true
	s, err := pipeline.OpenFolder(ctx, l.storage(), folder, o)
	if err != nil {
		return found, &node.DataError{Path: folder, Message: err.Error()}
	}
	defer s.Close()
	for _, c := range s.Classes() {
		found.Counts = append(found.Counts, c.Samples)
	}
	found.Fingerprint = s.Fingerprint()
	found.Keys, err = s.AppendKeys(nil)
	return found, err
}

// localNode is this process's own pipeline as a node of a fleet: no wire, no copies, images handed over as they are made.
type localNode struct {
	server *localServer
	plan   string // that of the fleet, as it names the data here; empty: as the fleet's does
}

// own is the plan as this machine has to read it.
func (n *localNode) own(plan string) string {
	if n.plan != "" {
		return n.plan
	}
	return plan
}

// Addr implements node.Node.
func (n *localNode) Addr() string { return node.Local }

// Open implements node.Node.
func (n *localNode) Open(ctx context.Context, r *pb.OpenRequest) (*pb.OpenResponse, error) {
	opened, err := n.server.Open(ctx, &pb.OpenRequest{
		Plan: n.own(r.Plan), Job: r.Job, Numerics: r.Numerics, Protocol: r.Protocol, Revisions: r.Revisions, Trainer: r.Trainer,
	})
	if err == nil && n.plan != "" {
		opened.Plan = r.Plan // other nodes are asked for it too
	}
	return opened, err
}

// Replay implements node.Node.
func (n *localNode) Replay(ctx context.Context, r *pb.ReplayRequest) (*pb.ReplayResponse, error) {
	return n.server.Replay(ctx, &pb.ReplayRequest{Plan: n.own(r.Plan), Numerics: r.Numerics, Revisions: r.Revisions, Name: r.Name, Pixels: r.Pixels})
}

// Close implements node.Node.
func (n *localNode) Close() error { return nil }

// Fetch implements node.Node.
func (n *localNode) Fetch(ctx context.Context, start *pb.Start, _ func(*pb.Notice)) (node.Stream, error) {
	job, err := n.server.Job(ctx, &pb.Start{
		Plan: n.own(start.Plan), Job: start.Job, Numerics: start.Numerics, Revisions: start.Revisions, Trainer: start.Trainer,
	})
	if err != nil {
		return nil, err
	}
	return &localStream{job: job, ended: make(chan struct{}), wants: map[*node.Attempt]*localWant{}}, nil
}

// localStream hands attempts to a job of this process. It has no goroutine of its own.
type localStream struct {
	job   *server.Job
	ended chan struct{}

	mu     sync.Mutex
	closed bool
	over   bool // ended is closed
	wants  map[*node.Attempt]*localWant
}

// localWant keeps a Cancel that comes while the want is being submitted from getting lost.
type localWant struct {
	server.Want

	mu                   sync.Mutex
	submitted, cancelled bool
}

func (w *localWant) submit(j *server.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancelled {
		w.Done(server.Made{Err: node.ErrCancelled})
		return
	}
	j.Submit(&w.Want)
	w.submitted = true
}

func (w *localWant) cancel(j *server.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancelled = true
	if w.submitted {
		j.Cancel(&w.Want)
	}
}

// Send implements node.Stream.
func (s *localStream) Send(a *node.Attempt) {
	w := &localWant{Want: server.Want{Name: a.Name, Request: a.Request}}
	w.Done = func(m server.Made) { s.done(a, m) }
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.wants[a] = w
	}
	s.mu.Unlock()
	if closed {
		a.Done(node.Answer{Err: client.ErrClosed})
		return
	}
	w.submit(s.job)
}

func (s *localStream) done(a *node.Attempt, m server.Made) {
	a.Done(answerOf(a, m))
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wants, a)
	s.endIfIdle()
}

func answerOf(a *node.Attempt, m server.Made) node.Answer {
	var room *pipeline.RoomError
	switch {
	case errors.As(m.Err, &room): // what was lent is too small, as a stream over the wire says it too
		return node.Answer{Err: &node.RoomError{Bytes: uint64(room.Bytes)}}
	case m.Failure != nil:
		return node.Answer{Failure: m.Failure}
	case m.Header == nil:
		return node.Answer{Err: m.Err}
	}
	return node.Answer{Header: m.Header, Data: m.Data, Imaged: a.Image != nil}
}

// Cancel implements node.Stream.
func (s *localStream) Cancel(a *node.Attempt) {
	s.mu.Lock()
	w := s.wants[a]
	s.mu.Unlock()
	if w != nil {
		w.cancel(s.job)
	}
}

// Pulse implements node.Stream. The agent, which is this process, knows it already.
func (s *localStream) Pulse(*pb.Pulse) {}

// Heard implements node.Stream.
func (s *localStream) Heard() time.Time { return time.Now() }

// Ended implements node.Stream.
func (s *localStream) Ended() <-chan struct{} { return s.ended }

// Err implements node.Stream.
func (s *localStream) Err() error { return nil }

// Close implements node.Stream.
func (s *localStream) Close() {
	s.mu.Lock()
	s.closed = true
	var rest []*localWant
	for _, w := range s.wants {
		rest = append(rest, w)
	}
	s.endIfIdle()
	s.mu.Unlock()
	for _, w := range rest {
		w.cancel(s.job)
	}
	<-s.ended
}

// endIfIdle closes ended, and lets go of the job, when nothing more can come. mu is held.
func (s *localStream) endIfIdle() {
	if s.closed && !s.over && len(s.wants) == 0 {
		s.over = true
		s.job.Close()
		close(s.ended)
	}
}
