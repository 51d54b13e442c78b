package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// troubled is a node whose storage does not answer: it makes nothing, and says so when it gets a want and never again,
// as a node without wants.
type troubled struct {
	lawfulNode
	mu     sync.Mutex
	stream *troubledStream
	dead   bool
}

func (n *troubled) Open(ctx context.Context, r *pb.OpenRequest) (*pb.OpenResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dead {
		return nil, errors.New("connection refused")
	}
	return n.lawfulNode.Open(ctx, r)
}

func (n *troubled) Fetch(_ context.Context, _ *pb.Start, notice func(*pb.Notice)) (node.Stream, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stream = &troubledStream{notice: notice, ended: make(chan struct{})}
	return n.stream, nil
}

// kill ends the stream; the node does not come back.
func (n *troubled) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead = true
	n.stream.Close()
}

type troubledStream struct {
	notice func(*pb.Notice)
	ended  chan struct{}

	mu    sync.Mutex
	wants []*node.Attempt
	over  bool
}

func (s *troubledStream) Send(a *node.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wants = append(s.wants, a)
	s.notice(&pb.Notice{Wants: 1, Trouble: "s3://bucket/x.jpg: no answer"})
}

func (s *troubledStream) Cancel(*node.Attempt)   { s.answer() }
func (s *troubledStream) Pulse(*pb.Pulse)        {}
func (s *troubledStream) Heard() time.Time       { return time.Now() }
func (s *troubledStream) Ended() <-chan struct{} { return s.ended }
func (s *troubledStream) Err() error             { return errors.New("connection lost") }

// answer ends all wants.
func (s *troubledStream) answer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.wants {
		a.Done(node.Answer{Err: node.ErrCancelled})
	}
	s.wants = nil
}

func (s *troubledStream) Close() {
	s.answer()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.over = true
		close(s.ended)
	}
}

// A node waits for storage as long as it holds a want: neither one that is idle does, nor one that is gone.
func TestNodeWaitsForStorageWithWantsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := manyNodes(t, 1)
		n := &troubled{lawfulNode: lawfulNode{c.all()[0]}}
		o := c.options(0)
		o.Dial = func(string) (node.Node, error) { return n, nil }
		f, err := client.New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		said := func() string {
			time.Sleep(time.Second)
			all := f.Status()
			if len(all) != 1 {
				t.Fatalf("%v", all)
			}
			return fmt.Sprint(all[0].Err)
		}
		ask := func() *client.Want {
			w := &client.Want{Name: rangeOf(0, 0, crowdBatch), Request: batch.Request{Dst: make([]byte, room)}, Done: func(client.Result) {}}
			f.Want(w)
			return w
		}
		const waits = "waits for storage: s3://bucket/x.jpg"
		w := ask()
		if told := said(); !strings.Contains(told, waits) {
			t.Errorf("with a want: %s", told)
		}
		f.Cancel(w)
		if told := said(); strings.Contains(told, "storage") {
			t.Errorf("idle: %s", told)
		}
		ask()
		if told := said(); !strings.Contains(told, waits) {
			t.Errorf("with a want again: %s", told)
		}
		n.kill()
		if told := said(); strings.Contains(told, "storage") || !strings.Contains(told, "connection") {
			t.Errorf("dead: %s", told)
		}
	})
}
