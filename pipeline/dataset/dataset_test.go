package dataset

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// TestMain sees to it that tests keep no lists where those of real programs are.
func TestMain(m *testing.M) {
	serveSlow()
	dir, err := os.Getenv("FEEDWATER_TEST_RUNTIME"), error(nil)
	if dir == "" {
		dir, err = os.MkdirTemp("", "feedwater-dataset-")
	}
	if err == nil {
		err = os.Setenv("XDG_RUNTIME_DIR", dir)
	}
	if err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if dir != os.Getenv("FEEDWATER_TEST_RUNTIME") {
			_ = os.RemoveAll(dir)
		}
		os.Exit(code)
	}))
}

// later is a clock on which nothing in the tests changed shortly before a scan.
func later() time.Time { return time.Now().Add(time.Hour) }

// options keep their manifests in a directory of the test and trust all directory times.
func options(t testing.TB) Options { return Options{CacheDir: t.TempDir(), now: later} }

func open(t testing.TB, root string, o Options) *Snapshot {
	t.Helper()
	s, err := Open(t.Context(), root, o)
	treetest.Must(t, err)
	t.Cleanup(func() { treetest.Must(t, s.Close()) })
	return s
}

// line is a sample without its buffer.
type line struct {
	key            string
	label          int
	size, modified int64
}

func lines(t testing.TB, s *Snapshot) []line {
	t.Helper()
	var all []line
	var buf []byte
	for i := range s.Len() {
		a, err := s.At(i, buf)
		treetest.Must(t, err)
		all = append(all, line{string(a.Key), int(a.Label), a.Size, a.ModifiedNanos})
		buf = a.Key
	}
	return all
}

func keys(t testing.TB, s *Snapshot) []string {
	t.Helper()
	var all []string
	for _, l := range lines(t, s) {
		all = append(all, l.key)
	}
	return all
}

// photos is the folder of real photographs, "" where there is none.
func photos(t testing.TB) string {
	dir := os.Getenv("FEEDWATER_PHOTOS")
	if dir != "" {
		return dir
	}
	dir, err := filepath.Abs("../../../shared/data/photos")
	treetest.Must(t, err)
	if _, err := os.Stat(dir); err != nil {
		return ""
	}
	return dir
}

func TestClosedSnapshotGivesErrors(t *testing.T) {
	s := open(t, treetest.Grow(t, t.TempDir(), "a/x.jpg"), options(t))
	treetest.Must(t, s.Close())
	treetest.Must(t, s.Close())
	if _, err := s.At(0, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("At: %v, want %v", err, ErrClosed)
	}
	if _, err := s.Read(t.Context(), 0, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Read: %v, want %v", err, ErrClosed)
	}
	if s.Len() != 1 || len(s.Classes()) != 1 || len(s.Fingerprint()) != 64 {
		t.Error("a closed snapshot forgot what it was")
	}
}

func TestIndexOutOfRange(t *testing.T) {
	s := open(t, treetest.Grow(t, t.TempDir(), "a/x.jpg"), options(t))
	for _, i := range []int{-1, 1, 32, math.MaxInt} {
		if _, err := s.At(i, nil); err == nil || errors.Is(err, ErrDamaged) {
			t.Errorf("At(%d) of 1 sample: %v", i, err)
		}
	}
}

func TestCloseWhileOthersRead(t *testing.T) {
	s := open(t, treetest.Grow(t, t.TempDir(), "a/x.jpg", "b/y.jpg"), options(t))
	ended := make(chan error)
	for range 4 {
		go func() {
			var buf []byte
			var err error
			for i := 0; err == nil; i++ {
				buf, err = s.Read(t.Context(), i%2, buf)
			}
			ended <- err
		}()
	}
	treetest.Must(t, s.Close())
	for range 4 {
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Errorf("%v, want %v", err, ErrClosed)
		}
	}
}
