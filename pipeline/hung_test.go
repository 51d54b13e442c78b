package pipeline

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/control/share"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

// hanging is storage of which some folders hang.
type hanging struct {
	mu        sync.Mutex
	hung      map[string]chan struct{} // closed when a folder answers again
	remounted bool                     // what is opened in a later generation answers
	waiting   int
	most      int
}

func (h *hanging) hang(folder string) (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := make(chan struct{})
	if h.hung == nil {
		h.hung = map[string]chan struct{}{}
	}
	h.hung[folder] = c
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.hung, folder)
		close(c)
	})
}

func (h *hanging) read(ctx context.Context, s *dataset.Snapshot, generation uint64, i int, line *dataset.Sample, buf []byte) ([]byte, error) {
	h.mu.Lock()
	c := h.hung[s.Path()]
	if generation > 0 && h.remounted {
		c = nil
	}
	if c != nil {
		h.waiting++
		h.most = max(h.most, h.waiting)
	}
	h.mu.Unlock()
	if c != nil {
		<-c
		h.mu.Lock()
		h.waiting--
		h.mu.Unlock()
	}
	return readNow(ctx, s, generation, i, line, buf)
}

// resolved is a folder of pictures, as snapshots name it.
func resolved(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(folder(t))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// hungPipeline has a job on a folder that hangs and one on another.
func hungPipeline(t *testing.T, o bulkhead.Options) (hung, well *Job, roots *bulkhead.Roots, h *hanging, release func()) {
	t.Helper()
	roots, h = bulkhead.New(o), &hanging{}
	t.Cleanup(roots.Close)
	p, err := Open(Options{Workers: 2, Storage: roots, read: h.read})
	if err != nil {
		t.Fatal(err)
	}
	x, y := resolved(t), resolved(t)
	hung, well = prepare(t, p, x, `{"transforms": [{"op": "Resize", "size": [8, 8]}]}`), prepare(t, p, y, `{"transforms": [{"op": "Resize", "size": [8, 8]}]}`)
	release = h.hang(x)
	t.Cleanup(func() {
		release()
		p.Close()
	})
	return hung, well, roots, h, release
}

// begin submits a want and returns what it ends with.
func begin(t *testing.T, j *Job, n batch.Name) chan Result {
	t.Helper()
	done := make(chan Result, 1)
	_, size := j.Layout(n.Len())
	// Wants of one account are made in order.
	if err := j.Submit(&Want{Name: n, Request: batch.Request{Dst: make([]byte, size)}, Account: share.NewAccount(1), Done: func(r Result) { done <- r }}); err != nil {
		t.Fatal(err)
	}
	return done
}

// While the reads of one folder hang, a job on another goes on, although the first one has more wants than there are
// workers, all due before.
func TestHungRootLeavesOthersAlone(t *testing.T) {
	const places = 3
	hung, well, roots, h, release := hungPipeline(t, bulkhead.Options{Deadline: time.Hour, Patience: time.Millisecond, Places: places})
	var stuck []chan Result
	for range 8 {
		stuck = append(stuck, begin(t, hung, batch.Name{Count: 16}))
	}
	for epoch := range uint32(3) {
		if _, r := fetch(t, well, batch.Name{Epoch: epoch, Count: 16}); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	if h.mu.Lock(); h.most > places {
		t.Errorf("%d reads of one root at once, with %d places", h.most, places)
	}
	h.mu.Unlock()
	if s := stateOf(roots, hung); s.Sick || s.Calls == 0 || s.Stuck == 0 || s.Oldest == 0 {
		t.Errorf("%+v", s)
	}
	release()
	for _, done := range stuck {
		if r := <-done; r.Err != nil {
			t.Error(r.Err)
		}
	}
}

func stateOf(roots *bulkhead.Roots, j *Job) bulkhead.State {
	for _, s := range roots.States() {
		if s.Folder == j.snapshot.Path() {
			return s
		}
	}
	return bulkhead.State{}
}

// A read that passes the deadline fails its want as this machine's trouble; the root is sick, where wants fail at once,
// until it answers.
func TestReadDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung, well, roots, h, release := hungPipeline(t, bulkhead.Options{Deadline: 20 * time.Millisecond, Patience: time.Millisecond, ProbeEvery: time.Millisecond})
		changes := make(chan bulkhead.State, 2)
		roots.OnChange(func(s bulkhead.State) { changes <- s })
		var read *ReadError
		var e *bulkhead.HungError
		if r := <-begin(t, hung, batch.Name{Count: 16}); !errors.As(r.Err, &read) || read.Key == "" || !errors.As(r.Err, &e) || e.Op != "read" || e.Root != hung.snapshot.Path() {
			t.Fatalf("%v", r.Err)
		}
		if s := <-changes; !s.Sick || s.Cause == nil || s.Timeouts == 0 {
			t.Errorf("%+v", s)
		}
		h.mu.Lock()
		before := h.waiting
		h.mu.Unlock()
		if r := <-begin(t, hung, batch.Name{Position: 3, Count: 16}); !errors.As(r.Err, &e) || e.Since.IsZero() {
			t.Errorf("of a sick root: %v", r.Err)
		}
		h.mu.Lock()
		if more := h.waiting - before; more > 1 {
			t.Errorf("%d more reads of a sick root: there should be its probe alone", more)
		}
		h.mu.Unlock()
		if _, r := fetch(t, well, batch.Name{Count: 16}); r.Err != nil {
			t.Error(r.Err)
		}
		release()
		if s := <-changes; s.Sick {
			t.Errorf("it answers: %+v", s)
		}
		if _, r := fetch(t, hung, batch.Name{Count: 16}); r.Err != nil {
			t.Error("it answers again: ", r.Err)
		}
	})
}

// A file system that is unmounted and mounted anew answers, while what was open of the one before hangs for ever.
func TestStorageIsMountedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung, _, roots, h, _ := hungPipeline(t, bulkhead.Options{Deadline: 20 * time.Millisecond, Patience: time.Millisecond, ProbeEvery: time.Millisecond, Places: 2})
		changes := make(chan bulkhead.State, 2)
		roots.OnChange(func(s bulkhead.State) { changes <- s })
		if r := <-begin(t, hung, batch.Name{Count: 16}); !errors.As(r.Err, new(*bulkhead.HungError)) {
			t.Fatalf("%v", r.Err)
		}
		if s := <-changes; !s.Sick {
			t.Fatalf("%+v", s)
		}
		for range 10 { // as many reads hang as there are places
			<-begin(t, hung, batch.Name{Position: 16, Count: 16})
			time.Sleep(time.Second) // its probes are stuck too
		}
		h.mu.Lock()
		h.remounted = true
		h.mu.Unlock()
		select {
		case s := <-changes:
			if s.Sick {
				t.Fatalf("%+v", s)
			}
		case <-time.After(time.Minute):
			t.Fatal("the root is sick although its storage answers")
		}
		for epoch := range uint32(3) {
			if _, r := fetch(t, hung, batch.Name{Epoch: epoch, Count: 16}); r.Err != nil {
				t.Error("it answers again: ", r.Err)
			}
		}
	})
}

// A want that is given up while its storage hangs ends, although no deadline is near.
func TestCancelWhileStorageHangs(t *testing.T) {
	hung, _, roots, h, _ := hungPipeline(t, bulkhead.Options{Deadline: time.Hour, Patience: time.Millisecond, Places: 2})
	done := make(chan Result, 1)
	_, size := hung.Layout(16)
	w := &Want{Name: batch.Name{Count: 16}, Request: batch.Request{Dst: make([]byte, size)}, Done: func(r Result) { done <- r }}
	if err := hung.Submit(w); err != nil {
		t.Fatal(err)
	}
	h.until(2)
	w.Cancel()
	if r := <-done; !errors.Is(r.Err, ErrCancelled) {
		t.Error(r.Err)
	}
	if s := stateOf(roots, hung); s.Sick {
		t.Error("a root is sick of which nobody knows whether it answers")
	}
}

// Trainers give wants up long before a read is: a root whose places all hang is sick all the same when the deadline is
// over.
func TestReadsThatNobodyWantsMakeTheirRootSick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung, _, roots, h, release := hungPipeline(t, bulkhead.Options{Places: 2})
		for position := range uint64(3) {
			done := make(chan Result, 1)
			_, size := hung.Layout(16)
			w := &Want{Name: batch.Name{Position: position, Count: 16}, Request: batch.Request{Dst: make([]byte, size)}, Done: func(r Result) { done <- r }}
			if err := hung.Submit(w); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			w.Cancel()
			if r := <-done; !errors.Is(r.Err, ErrCancelled) {
				t.Error(r.Err)
			}
		}
		h.mu.Lock()
		most := h.most
		h.mu.Unlock()
		if most > 2 || stateOf(roots, hung).Sick {
			t.Errorf("%d reads at once in 2 places, %+v", most, stateOf(roots, hung))
		}
		time.Sleep(40 * time.Second)
		if s := stateOf(roots, hung); !s.Sick || s.Timeouts != 2 {
			t.Errorf("%+v", s)
		}
		release()
		time.Sleep(10 * time.Second)
		if _, r := fetch(t, hung, batch.Name{Count: 16}); r.Err != nil || stateOf(roots, hung).Sick {
			t.Errorf("it answers again: %v, %+v", r.Err, stateOf(roots, hung))
		}
	})
}

// A pipeline whose storage hangs can be closed: wants end, and Close returns.
func TestCloseWhileStorageHangs(t *testing.T) {
	hung, _, _, _, _ := hungPipeline(t, bulkhead.Options{Deadline: time.Hour, Patience: time.Millisecond})
	var all []chan Result
	for range 20 {
		all = append(all, begin(t, hung, batch.Name{Count: 16}))
	}
	hung.p.Close()
	for _, done := range all {
		if r := <-done; r.Err == nil {
			t.Error("a batch of storage that hangs")
		}
	}
}

// Roots that hang one after the other have so many goroutines replaced in all, and no more.
func TestReplacedInAll(t *testing.T) {
	h := &hanging{}
	const places, replaced = 4, 6
	roots := bulkhead.New(bulkhead.Options{Deadline: time.Hour, Patience: time.Millisecond, Places: places, Replaced: replaced})
	defer roots.Close()
	p, err := Open(Options{Workers: 1, Readers: 1, Storage: roots, read: h.read})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	for range 4 {
		dir := resolved(t)
		defer h.hang(dir)()
		begin(t, prepare(t, p, dir, `{"transforms": [{"op": "Resize", "size": [8, 8]}]}`), batch.Name{Count: 16})
	}
	h.until(p.options.Workers + p.options.Readers + replaced)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.most != p.options.Workers+p.options.Readers+replaced {
		t.Errorf("%d reads at once", h.most)
	}
}

// until waits for so many reads to hang.
func (h *hanging) until(n int) {
	for {
		h.mu.Lock()
		waiting := h.waiting
		h.mu.Unlock()
		if waiting >= n {
			return
		}
		runtime.Gosched()
	}
}
