package local

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
)

// A Node is this process's own pipeline as a node of a fleet: no wire, no copies, images handed over as they are made.
type Node struct {
	server *server.Server
	plan   string // that of the fleet, as it names the data here; empty: as the fleet's does
	job    atomic.Pointer[server.Job]
}

// Trouble implements node.Troubled.
func (n *Node) Trouble() string {
	if job := n.job.Load(); job != nil {
		return job.Trouble()
	}
	return ""
}

// planFor is the plan as this machine has to read it.
func (n *Node) planFor(plan string) string {
	if n.plan != "" {
		return n.plan
	}
	return plan
}

// Addr implements node.Node.
func (n *Node) Addr() string { return node.Local }

// Open implements node.Node.
func (n *Node) Open(ctx context.Context, r *pb.OpenRequest) (*pb.OpenResponse, error) {
	opened, err := n.server.Open(ctx, &pb.OpenRequest{
		Plan: n.planFor(r.Plan), Job: r.Job, Numerics: r.Numerics, Protocol: r.Protocol, Revisions: r.Revisions, Trainer: r.Trainer,
		ListedWithin: r.ListedWithin,
	})
	if err == nil && n.plan != "" {
		opened.Plan = r.Plan // other nodes are asked for it too
	}
	return opened, err
}

// Put implements node.Putter.
func (n *Node) Put(ctx context.Context, table string, bytes int64, text io.Reader) error {
	return n.server.PutTable(ctx, table, bytes, text)
}

// Replay implements node.Node.
func (n *Node) Replay(ctx context.Context, r *pb.ReplayRequest) (*pb.ReplayResponse, error) {
	return n.server.Replay(ctx, &pb.ReplayRequest{Plan: n.planFor(r.Plan), Numerics: r.Numerics, Revisions: r.Revisions, Name: r.Name, Pixels: r.Pixels})
}

// Close implements node.Node.
func (n *Node) Close() error { return nil }

// Fetch implements node.Node.
func (n *Node) Fetch(ctx context.Context, start *pb.Start, _ func(*pb.Notice)) (node.Stream, error) {
	job, err := n.server.Job(ctx, &pb.Start{
		Plan: n.planFor(start.Plan), Job: start.Job, Numerics: start.Numerics, Revisions: start.Revisions, Trainer: start.Trainer, Versions: start.Versions,
	})
	if err != nil {
		return nil, err
	}
	n.job.Store(job)
	return &stream{job: job, ended: make(chan struct{}), wants: map[*node.Attempt]*localWant{}}, nil
}
