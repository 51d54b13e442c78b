package dataset

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// grow makes what the lines say below root: "a/b/" a folder, "a/l -> target" a link, anything else a file whose size is the
// length of its line. Folders above are made as needed.
func grow(t testing.TB, root string, lines ...string) string {
	t.Helper()
	for _, line := range lines {
		path, target, isLink := strings.Cut(line, " -> ")
		at := root + "/" + path
		must(t, os.MkdirAll(filepath.Dir(at), 0o700))
		switch {
		case isLink:
			must(t, os.Symlink(target, at))
		case strings.HasSuffix(line, "/"):
			must(t, os.MkdirAll(at, 0o700))
		default:
			must(t, os.WriteFile(at, bytes.Repeat([]byte{'x'}, len(line)), 0o600))
		}
	}
	return root
}

// later is a clock on which nothing in the tests changed shortly before a scan.
func later() time.Time { return time.Now().Add(time.Hour) }

// options keep their manifests in a directory of the test and trust all directory times.
func options(t testing.TB) Options { return Options{CacheDir: t.TempDir(), now: later} }

func open(t testing.TB, root string, o Options) *Snapshot {
	t.Helper()
	s, err := Open(t.Context(), root, o)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
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
		must(t, err)
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
	must(t, err)
	if _, err := os.Stat(dir); err != nil {
		return ""
	}
	return dir
}

func TestClosedSnapshotGivesErrors(t *testing.T) {
	s := open(t, grow(t, t.TempDir(), "a/x.jpg"), options(t))
	must(t, s.Close())
	must(t, s.Close())
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
	s := open(t, grow(t, t.TempDir(), "a/x.jpg"), options(t))
	for _, i := range []int{-1, 1, 32, math.MaxInt} {
		if _, err := s.At(i, nil); err == nil || errors.Is(err, ErrDamaged) {
			t.Errorf("At(%d) of 1 sample: %v", i, err)
		}
	}
}

func TestCloseWhileOthersRead(t *testing.T) {
	s := open(t, grow(t, t.TempDir(), "a/x.jpg", "b/y.jpg"), options(t))
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
	must(t, s.Close())
	for range 4 {
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Errorf("%v, want %v", err, ErrClosed)
		}
	}
}
