package pipeline

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
)

// bucket has the pictures of a folder, and a job on them.
func bucket(t *testing.T, o Options) (*buckettest.Server, *Job, string) {
	t.Helper()
	dir := folder(t)
	s := buckettest.OfFolder(t, dir)
	p, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	data, err := dataset.Open(t.Context(), s.Place("p"), dataset.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = data.Close() })
	t.Cleanup(p.Close)
	plan, err := ParsePlan([]byte(fmt.Sprintf(cropPlan, "")))
	if err != nil {
		t.Fatal(err)
	}
	j, err := p.Prepare(plan, data)
	if err != nil {
		t.Fatal(err)
	}
	return s, j, dir
}

// TestReadAheadMakesTheSameBatches: of a bucket and of a folder, with room for all files, for few, and for none.
func TestReadAheadMakesTheSameBatches(t *testing.T) {
	for _, budget := range []int64{0, 1, 20_000, -1} {
		_, j, dir := bucket(t, Options{Workers: 2, ReadAhead: budget})
		want := epochDigest(t, open(t, dir, fmt.Sprintf(cropPlan, ""), Options{Workers: 2}), 1, len(pictures()))
		if got := epochDigest(t, j, 1, len(pictures())); got != want {
			t.Errorf("budget %d: %s, want %s", budget, got, want)
		}
		if left := j.p.ahead.left(); left != 0 {
			t.Errorf("budget %d: %d bytes are still counted", budget, left)
		}
	}
}

// left is how many bytes are counted once no read is in flight: a want ends before its reads that are of no use do.
func (a *readAhead) left() int64 {
	a.running.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// TestReadsBeginBeforeWorkers: with one worker that decodes, many more reads than there are workers are in flight.
func TestReadsBeginBeforeWorkers(t *testing.T) {
	s, j, _ := bucket(t, Options{Workers: 1})
	const together = 12
	var asked atomic.Int32
	all := make(chan struct{})
	s.Fail(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && asked.Add(1) == together {
			close(all)
		}
		select {
		case <-all:
		case <-r.Context().Done():
		}
		return false
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan Result, 1)
	submit(t, j, batch.Name{Count: 20}, time.Time{}, func(r Result) { done <- r })
	select {
	case <-all:
	case <-ctx.Done():
		t.Errorf("%d reads in flight, want %d", asked.Load(), together)
		s.Fail(nil)
	}
	if r := <-done; r.Err != nil {
		t.Error(r.Err)
	}
}

// TestReadAheadEndsWithItsWant: a want that is cancelled leaves no reads and no bytes behind.
func TestReadAheadEndsWithItsWant(t *testing.T) {
	s, j, _ := bucket(t, Options{Workers: 1})
	var once sync.Once
	begun := make(chan struct{})
	s.Fail(func(_ http.ResponseWriter, r *http.Request) bool {
		once.Do(func() { close(begun) })
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	})
	done := make(chan Result, 1)
	w := submit(t, j, batch.Name{Count: 20}, time.Time{}, func(r Result) { done <- r })
	<-begun
	w.Cancel()
	j.p.ahead.running.Wait()
	s.Fail(nil) // whoever reads on gets an answer
	if r := <-done; !errors.Is(r.Err, ErrCancelled) {
		t.Errorf("%v, want %v", r.Err, ErrCancelled)
	}
	if left := j.p.ahead.left(); left != 0 {
		t.Errorf("%d bytes are still counted", left)
	}
	if _, r := fetch(t, j, batch.Name{Count: 20}); r.Err != nil {
		t.Error(r.Err)
	}
}

// TestChangedInBucketIsNoVerdict: an object that was replaced is a *ReadError that names it, with and without read-ahead.
func TestChangedInBucketIsNoVerdict(t *testing.T) {
	for _, budget := range []int64{0, -1} {
		s, j, _ := bucket(t, Options{Workers: 1, ReadAhead: budget})
		s.Put("p/class_0/img_0.jpg", []byte("another picture"))
		_, r := fetch(t, j, batch.Name{Count: len(pictures())})
		var read *ReadError
		var changed *dataset.ChangedError
		if !errors.As(r.Err, &read) || !errors.As(r.Err, &changed) || read.Key != "class_0/img_0.jpg" {
			t.Errorf("%v, want a ReadError of class_0/img_0.jpg that wraps a ChangedError", r.Err)
		}
		if left := j.p.ahead.left(); left != 0 {
			t.Errorf("%d bytes are still counted", left)
		}
	}
}

// prepareGuarded prepares the plan of a job on a place that is read below roots, as nodes read it.
func prepareGuarded(t *testing.T, of *Job, roots *bulkhead.Roots, place string) *Job {
	t.Helper()
	data, err := OpenFolder(t.Context(), roots, place, dataset.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = data.Close() })
	j, err := of.p.Prepare(of.plan, data)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// A read that a server does not answer is given up by its root, which is sick then, as a folder's is.
func TestServerThatDoesNotAnswerMakesItsRootSick(t *testing.T) {
	for _, ahead := range []int64{0, 1 << 20} {
		roots := bulkhead.New(bulkhead.Options{Deadline: time.Second, ProbeEvery: time.Hour})
		defer roots.Close()
		s, first, _ := bucket(t, Options{Workers: 1, Storage: roots, ReadAhead: ahead})
		j := prepareGuarded(t, first, roots, s.Place("p"))
		answer := make(chan struct{})
		t.Cleanup(sync.OnceFunc(func() { close(answer) }))
		s.Fail(func(http.ResponseWriter, *http.Request) bool { <-answer; return false })
		var hung *bulkhead.HungError
		const says = ": no answer " // after the URL of an object
		if r := <-begin(t, j, batch.Name{Count: 4}); !errors.As(r.Err, &hung) || !roots.Of(j.snapshot.Path()).Sick() || !strings.Contains(r.Err.Error(), says) {
			t.Errorf("%d bytes are read ahead: %v", ahead, r.Err)
		}
		if r := <-begin(t, j, batch.Name{Count: 4}); !errors.As(r.Err, &hung) || hung.Since.IsZero() || !strings.Contains(r.Err.Error(), says) {
			t.Errorf("of a root that is sick, with %d bytes read ahead: %v", ahead, r.Err)
		}
	}
}

// An object that is never read to its end is its own trouble while others are: its want fails with what the server did,
// and the root is well.
func TestObjectThatIsNeverReadMakesNoRootSick(t *testing.T) {
	roots := bulkhead.New(bulkhead.Options{Deadline: 2 * time.Second, ProbeEvery: time.Hour})
	defer roots.Close()
	s, first, _ := bucket(t, Options{Workers: 4, Storage: roots})
	j := prepareGuarded(t, first, roots, s.Place("p"))
	const key = "class_0/img_0.jpg" // the first
	s.Fail(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/"+key) {
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}
		return false
	})
	failing := begin(t, j, batch.Name{List: []batch.Ref{{Index: 0}}})
	for {
		select {
		case r := <-failing:
			var read *ReadError
			if !errors.As(r.Err, &read) || read.Key != key || errors.As(r.Err, new(*bulkhead.HungError)) || roots.Of(j.snapshot.Path()).Sick() {
				t.Errorf("%v, want what happened to %s, of a root that is well", r.Err, key)
			}
			return
		default:
			if _, r := fetch(t, j, batch.Name{List: []batch.Ref{{Index: 1}, {Index: 2}}}); r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
}
