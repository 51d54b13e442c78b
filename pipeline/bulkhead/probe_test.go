package bulkhead_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
)

// part is a part of a root that does not answer while hangs is not closed, and what was asked of it.
type part struct {
	hangs chan struct{}
	asked atomic.Int32
}

func (p *part) ask(func()) (int, error) {
	p.asked.Add(1)
	<-p.hangs
	return 0, nil
}

// sickOf makes a root sick of parts that do not answer.
func sickOf(t *testing.T, r *bulkhead.Root, parts ...*part) {
	t.Helper()
	done := make(chan error)
	for _, p := range parts {
		go func() {
			_, err := bulkhead.Do(context.Background(), r, "ask", p.ask, nil)
			done <- err
		}()
	}
	for range parts {
		if err := <-done; !errors.As(err, new(*bulkhead.HungError)) {
			t.Fatalf("%v", err)
		}
	}
}

// A root of which a part hangs stays sick while its folder, and all else, answers: else it would turn sick and well in
// turns, and hold a batch up each time.
func TestRootIsSickAsLongAsWhatHungHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		roots := bulkhead.New(bulkhead.Options{Deadline: 10 * time.Second})
		defer roots.Close()
		var changes atomic.Int32
		roots.OnChange(func(bulkhead.State) { changes.Add(1) })
		r := roots.Add("x", t.TempDir())
		one, other := &part{hangs: make(chan struct{})}, &part{hangs: make(chan struct{})}
		sickOf(t, r, one, other)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if !r.Sick() || changes.Load() != 1 {
			t.Errorf("sick: %v, %d changes", r.Sick(), changes.Load())
		}
		if n := one.asked.Load() + other.asked.Load(); n < 5 || n > 12 {
			t.Errorf("what hung was asked for %d times, by two calls, and by probes that come ever more seldom", n)
		}
		close(other.hangs) // one of two answers
		time.Sleep(time.Minute)
		if !r.Sick() {
			t.Error("a root is well of which a part hangs")
		}
		close(one.hangs)
		time.Sleep(time.Minute)
		if r.Sick() || changes.Load() != 2 {
			t.Errorf("sick: %v, %d changes", r.Sick(), changes.Load())
		}
	})
}

// What hung may fail at last, as on a file server that is mounted softly; then the probe tells whether the root
// answers.
func TestRootIsWellWhenWhatHungIsAnsweredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		roots := bulkhead.New(bulkhead.Options{Deadline: 10 * time.Second})
		defer roots.Close()
		r := roots.Add("x", t.TempDir())
		var hangs atomic.Bool
		hangs.Store(true)
		var asked atomic.Int32
		_, err := bulkhead.Do(t.Context(), r, "ask", func(func()) (int, error) {
			asked.Add(1)
			if !hangs.Load() {
				return 0, errors.New("no such file")
			}
			time.Sleep(time.Minute)
			return 0, errors.New("gave up")
		}, nil)
		if !errors.As(err, new(*bulkhead.HungError)) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if !r.Sick() || asked.Load() < 3 {
			t.Errorf("sick: %v, asked %d times", r.Sick(), asked.Load())
		}
		hangs.Store(false)
		time.Sleep(5 * time.Minute)
		if r.Sick() {
			t.Error("the root answers, and is sick")
		}
	})
}

// What cannot be done twice has another call in its place; where there is none the folder is looked into.
func TestProbeOfWhatIsDoneOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		roots := bulkhead.New(bulkhead.Options{Deadline: 10 * time.Second})
		defer roots.Close()
		dir := t.TempDir()
		r := roots.Add("x", dir)
		never := make(chan struct{})
		defer close(never)
		calls, again := 0, 0
		once := func(instead func() error) {
			_, err := bulkhead.DoOnce(t.Context(), r, "write", func(func()) (int, error) { calls++; <-never; return 0, nil }, nil,
				func() func() error { return instead })
			if !errors.As(err, new(*bulkhead.HungError)) || !r.Sick() {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		once(func() error { again++; return os.WriteFile(filepath.Join(dir, "x"), nil, 0o600) })
		if calls != 1 || again != 1 || r.Sick() {
			t.Errorf("called %d times, again %d times, sick: %v", calls, again, r.Sick())
		}
		if once(nil); calls != 2 || r.Sick() {
			t.Errorf("called %d times, sick: %v", calls, r.Sick())
		}
	})
}

// TestRootsOnServers: what lies below an URL is its root's, with the same options.
func TestRootsOnServers(t *testing.T) {
	rs := bulkhead.New(bulkhead.Options{})
	defer rs.Close()
	root := rs.Add("b", "s3://b/p?endpoint=http://h:1&region=r")
	for folder, in := range map[string]bool{
		"s3://b/p?endpoint=http://h:1&region=r": true, "s3://b/p/x/y?endpoint=http://h:1&region=r": true, "s3://b/p/x?region=r": false,
		"s3://b/pp?endpoint=http://h:1&region=r": false, "s3://c/p?endpoint=http://h:1&region=r": false, "/p": false,
	} {
		if got := rs.Of(folder) == root; got != in {
			t.Errorf("%s: in the root %v, want %v", folder, got, in)
		}
	}
}

// TestNamesOf: all roots that a folder lies in, the innermost first.
func TestNamesOf(t *testing.T) {
	rs := bulkhead.New(bulkhead.Options{})
	defer rs.Close()
	rs.Add("all", "/data")
	rs.Add("photos", "/data/photos")
	rs.Add("twin", "/data/photos")
	rs.Add("linked", "/link").Means("/data/photos/here")
	for folder, want := range map[string]string{
		"/data/photos/x": "photos twin all", "/data": "all", "/data/photos/here/y": "linked photos twin all", "/link/z": "linked", "/other": "", "/data/photosX": "all",
	} {
		if got := strings.Join(rs.NamesOf(folder), " "); got != want {
			t.Errorf("%s: %q, want %q", folder, got, want)
		}
	}
}
