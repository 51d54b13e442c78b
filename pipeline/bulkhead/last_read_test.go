package bulkhead_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
)

// TestReadsThatEndKeepARootWell: a call that takes longer than the deadline is not given up while reads of its root end,
// and is when none has ended for so long.
func TestReadsThatEndKeepARootWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		roots := bulkhead.New(bulkhead.Options{Deadline: 10 * time.Second})
		defer roots.Close()
		r, other := roots.Add("x", t.TempDir()), roots.Add("y", t.TempDir())
		p := part{hangs: make(chan struct{})}
		ended := make(chan error, 1)
		go func() {
			_, err := bulkhead.Do(context.Background(), r, "ask", p.ask, nil)
			ended <- err
		}()
		for range 10 {
			time.Sleep(9 * time.Second)
			r.NoteRead()
			other.NoteRead()
		}
		if r.Sick() {
			t.Error("it is sick while its reads end")
		}
		last := time.Now()
		for len(ended) == 0 {
			time.Sleep(time.Second)
			other.NoteRead()
		}
		if took := time.Since(last); !errors.As(<-ended, new(*bulkhead.HungError)) || !r.Sick() || took < 10*time.Second || took > 12*time.Second {
			t.Errorf("sick %v, %s after the last read", r.Sick(), took)
		}
		close(p.hangs)
		synctest.Wait()
	})
}
