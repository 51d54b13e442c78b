package client

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// job is what the parts of a fleet share: what it was made for, what it pinned, and its goroutines.
type job struct {
	options Options
	log     *slog.Logger
	inbox   *inbox
	pacing  pacing
	info    atomic.Pointer[pb.OpenResponse] // that the job pins
	epoch   time.Time                       // that package pick's seconds are counted from; of the fleet's goroutine

	ctx     context.Context
	cancel  context.CancelFunc
	keepers sync.WaitGroup
}

func newJob(o Options) *job {
	j := &job{options: o, log: o.Log, inbox: newInbox(), epoch: time.Now()}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	return j
}
