//go:build testnode

package pipeline

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/control/share"
)

// Replays take the share of whose account they are on, as wants do.
func TestNodeReplaysHaveShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := open(t, folder(t), fmt.Sprintf(cropPlan, ""), Options{Workers: 1, TestNode: TestNode{SampleTime: time.Millisecond}})
		const count, wants = 16, 40
		ctx, stop := context.WithCancel(t.Context())
		var replays sync.WaitGroup
		var replayed atomic.Int64
		little := share.NewAccount(0.05)
		for range 4 {
			replays.Go(func() {
				for ctx.Err() == nil {
					if _, err := j.Replay(ctx, batch.Name{Count: 1}, math.MaxInt, little); err == nil {
						replayed.Add(1)
					}
				}
			})
		}
		account, done := share.NewAccount(1), make(chan struct{}, wants)
		_, size := j.Layout(count)
		for i := range uint64(wants) {
			w := &Want{Name: batch.Name{Position: count * i, Count: count}, Request: batch.Request{Dst: make([]byte, size), Due: time.Now()}, Account: account, Done: func(Result) { done <- struct{}{} }}
			if err := j.Submit(w); err != nil {
				t.Fatal(err)
			}
		}
		for range wants {
			<-done
		}
		if n := replayed.Load(); n == 0 || n > wants*count/10 {
			t.Errorf("%d samples were replayed beside %d, a twentieth of them is due", n, wants*count)
		}
		stop()
		replays.Wait()
	})
}

// A replay that nobody waits for any more ends.
func TestNodeReplayIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := open(t, folder(t), fmt.Sprintf(cropPlan, ""), Options{Workers: 1, TestNode: TestNode{SampleTime: time.Second}})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		if _, err := j.Replay(ctx, batch.Name{Count: 50}, math.MaxInt, nil); err != context.DeadlineExceeded { //nolint:errorlint // this very one
			t.Errorf("ended with %v", err)
		}
		if took := time.Since(began); took > 20*time.Second { // what was begun is made
			t.Errorf("it took %v", took)
		}
	})
}
