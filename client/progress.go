package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

const (
	progressFirst = time.Second // after which an Open that is not answered is asked about
	progressEvery = 2 * time.Second
)

// open opens the plan at the node. Meanwhile the fleet hears which folders the node lists for it, and how far it is.
func (m *member) open(ctx context.Context, request *pb.OpenRequest) (*pb.OpenResponse, error) {
	node, ok := m.node.(node.Progressor)
	if !ok {
		return m.node.Open(ctx, request)
	}
	asking, stop := context.WithCancel(ctx)
	var asked sync.WaitGroup
	asked.Go(func() { m.ask(asking, node, &pb.ProgressRequest{Plan: request.GetPlan()}) })
	r, err := m.node.Open(ctx, request)
	stop()
	asked.Wait()
	return r, err
}

// ask asks a node for its progress until ctx ends; one that knows no such question is not asked again.
func (m *member) ask(ctx context.Context, node node.Progressor, request *pb.ProgressRequest) {
	wait := time.NewTimer(progressFirst)
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
		case <-ctx.Done():
			m.roster.job.inbox.post(func() { m.scans = nil })
			return
		}
		limited, cancel := context.WithTimeout(ctx, progressEvery)
		r, err := node.Progress(limited, request)
		cancel()
		if status.Code(err) == codes.Unimplemented {
			return
		}
		if err == nil {
			m.roster.job.inbox.post(func() { m.scans = r.Scans })
		}
		wait.Reset(progressEvery)
	}
}

// trouble is the last error of a node, or what it is at.
func (m *member) trouble(state NodeState) error {
	if state != Scanning {
		return m.err
	}
	var all []string
	for _, s := range m.scans {
		all = append(all, fmt.Sprintf("%s: %d files in %s, %.0f a second",
			s.Folder, s.Files, s.Running.AsDuration().Round(time.Second), amount(s.FilesPerSecond)))
	}
	return errors.New(strings.Join(all, ", "))
}
