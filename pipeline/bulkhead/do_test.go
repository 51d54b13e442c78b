package bulkhead_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
)

// callers call Do on one root until answer is closed, and return their errors.
func callers(ctx context.Context, r *bulkhead.Root, n int, answer chan struct{}) (wait func() []error) {
	var running sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		running.Go(func() {
			_, errs[i] = bulkhead.Do(ctx, r, "look", func(func()) (int, error) { <-answer; return 0, nil }, nil)
		})
	}
	return func() []error { running.Wait(); return errs }
}

func awaitCalls(roots *bulkhead.Roots, n int) {
	for roots.States()[0].Calls < n {
		runtime.Gosched()
	}
}

// A node that many trainers open at once, or an index that many workers make, has more calls than one root has places
// for them.
func TestDoWaitsForAPlace(t *testing.T) {
	roots := bulkhead.New(bulkhead.Options{})
	defer roots.Close()
	answer := make(chan struct{})
	wait := callers(t.Context(), roots.Add("x", t.TempDir()), 200, answer)
	awaitCalls(roots, 64)
	close(answer)
	for _, err := range wait() {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestDoWaitsNoLongerThanItsContext(t *testing.T) {
	roots := bulkhead.New(bulkhead.Options{})
	defer roots.Close()
	answer := make(chan struct{})
	r := roots.Add("x", t.TempDir())
	wait := callers(t.Context(), r, 64, answer)
	awaitCalls(roots, 64)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := callers(ctx, r, 1, answer)()[0]; !errors.Is(err, context.Canceled) {
		t.Errorf("a call that found no place ended with %v", err)
	}
	close(answer)
	wait()
}

func TestDoWaitsNotForSickStorage(t *testing.T) {
	roots := bulkhead.New(bulkhead.Options{Deadline: 20 * time.Millisecond, ProbeEvery: time.Hour})
	defer roots.Close()
	answer := make(chan struct{})
	defer close(answer)
	for _, err := range callers(t.Context(), roots.Add("x", t.TempDir()), 200, answer)() {
		if !errors.As(err, new(*bulkhead.HungError)) {
			t.Fatalf("a call on storage that does not answer ended with %v", err)
		}
	}
	if n := roots.States()[0].Calls; n > 64 {
		t.Errorf("%d calls wait for storage that does not answer", n)
	}
}
