package dataset

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

func TestManifestIsUsedAgain(t *testing.T) {
	root, o := treetest.Grow(t, t.TempDir(), "a/x.jpg", "a/b/y.jpg", "c/z.jpg"), options(t)
	first := open(t, root, o)
	if first.Cached() {
		t.Error("the first snapshot came from the cache")
	}
	second := open(t, root, o)
	if !second.Cached() || second.Fingerprint() != first.Fingerprint() || second.Path() != first.Path() {
		t.Errorf("the second is %+v, the first %+v", second, first)
	}
	o.Refresh = true
	if open(t, root, o).Cached() {
		t.Error("Refresh did not scan")
	}
}

func TestRootsAreToldApartByRealPath(t *testing.T) {
	root, o := treetest.Grow(t, t.TempDir(), "train/a/x.jpg", "val/a/y.jpg", "link -> train"), options(t)
	train := open(t, root+"/train", o)
	if open(t, root+"/val", o).Cached() {
		t.Error("val came from train's manifest")
	}
	if s := open(t, root+"/link", o); !s.Cached() || s.Path() != train.Path() {
		t.Errorf("the link to train: path %s, cached %v", s.Path(), s.Cached())
	}
}

// TestDirectoriesTellChanges: whatever happens to a directory, the next snapshot is a new one, and is right.
func TestDirectoriesTellChanges(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(t *testing.T, root string)
		keys   string
	}{
		{"added", func(t *testing.T, root string) { treetest.Grow(t, root, "a/b/new.jpg") }, "a/x.jpg a/b/new.jpg a/b/y.jpg c/z.jpg"},
		{"removed", func(t *testing.T, root string) { treetest.Must(t, os.Remove(root+"/a/b/y.jpg")) }, "a/x.jpg c/z.jpg"},
		{"renamed", func(t *testing.T, root string) { treetest.Must(t, os.Rename(root+"/a/x.jpg", root+"/a/w.jpg")) }, "a/w.jpg a/b/y.jpg c/z.jpg"},
		{"class added", func(t *testing.T, root string) { treetest.Grow(t, root, "b/x.jpg") }, "a/x.jpg a/b/y.jpg b/x.jpg c/z.jpg"},
		{"class renamed", func(t *testing.T, root string) { treetest.Must(t, os.Rename(root+"/a", root+"/d")) }, "c/z.jpg d/x.jpg d/b/y.jpg"},
		{"folder renamed", func(t *testing.T, root string) { treetest.Must(t, os.Rename(root+"/a/b", root+"/a/0")) }, "a/x.jpg a/0/y.jpg c/z.jpg"},
		{"folder removed", func(t *testing.T, root string) { treetest.Must(t, os.RemoveAll(root+"/a/b")) }, "a/x.jpg c/z.jpg"},
		{"behind a link", func(t *testing.T, root string) { treetest.Grow(t, filepath.Dir(root), "elsewhere/new.jpg") }, "a/x.jpg a/b/y.jpg c/z.jpg c/far/new.jpg"},
		{"link turned", func(t *testing.T, root string) {
			treetest.Must(t, os.Remove(root+"/c/far"))
			treetest.Must(t, os.Symlink("../a/b", root+"/c/far"))
		}, "a/x.jpg a/b/y.jpg c/z.jpg c/far/y.jpg"},
		{"exchanged", func(t *testing.T, root string) {
			treetest.Must(t, os.Rename(root, root+".old"))
			treetest.Grow(t, root, "a/1.jpg")
		}, "a/1.jpg"},
		{"exchanged with old times", func(t *testing.T, root string) {
			fi, err := os.Stat(root + "/a/b")
			treetest.Must(t, err)
			treetest.Must(t, os.Remove(root+"/a/b/y.jpg"))
			treetest.Must(t, os.Chtimes(root+"/a/b", fi.ModTime(), fi.ModTime()))
		}, "a/x.jpg c/z.jpg"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if portable && test.name == "exchanged with old times" {
				return // needs the time of change
			}
			root, o := t.TempDir()+"/root", options(t)
			treetest.Grow(t, root, "a/x.jpg", "a/b/y.jpg", "c/z.jpg", "c/far -> ../../elsewhere", "../elsewhere/")
			before := open(t, root, o)
			if !open(t, root, o).Cached() {
				t.Fatal("the manifest was no good before the change")
			}
			test.change(t, root)
			after := open(t, root, o)
			if after.Cached() {
				t.Error("the change was not noticed")
			}
			if got := strings.Join(keys(t, after), " "); got != test.keys {
				t.Errorf("samples %s, want %s", got, test.keys)
			}
			if after.Fingerprint() == before.Fingerprint() {
				t.Error("the fingerprint is the old one")
			}
		})
	}
}

// TestYoungDirectoriesAreNotTrusted: what changed just before a scan could have changed again with the same time.
func TestYoungDirectoriesAreNotTrusted(t *testing.T) {
	root, o := treetest.Grow(t, t.TempDir(), "a/x.jpg"), options(t)
	for _, test := range []struct {
		sinceChange time.Duration
		cached      bool
	}{{0, false}, {1900 * time.Millisecond, false}, {10 * time.Second, true}} {
		fi, err := os.Stat(root + "/a")
		treetest.Must(t, err)
		o.now = func() time.Time { return fi.ModTime().Add(test.sinceChange) }
		o.Refresh = true
		open(t, root, o)
		o.Refresh = false
		if got := open(t, root, o).Cached(); got != test.cached {
			t.Errorf("scanned %v after the change: cached is %v, want %v", test.sinceChange, got, test.cached)
		}
	}
}

// TestChangedSinceTheListing: a file that is written in place does not tell its directory, so the manifest is taken as it was kept; the error
// says when the data set was listed, not when it was opened, and the next Open lists it anew.
func TestChangedSinceTheListing(t *testing.T) {
	root, o := treetest.Grow(t, t.TempDir(), "a/x.jpg"), options(t)
	listed := time.Now().Add(time.Hour).Truncate(time.Second)
	o.now = func() time.Time { return listed }
	open(t, root, o)
	treetest.Must(t, os.WriteFile(root+"/a/x.jpg", []byte("more than there was"), 0o644))
	o.now = func() time.Time { return listed.Add(time.Minute) }
	s := open(t, root, o)
	_, err := s.Read(t.Context(), 0, nil)
	want := "a/x.jpg has 19 bytes, had 7: it changed after " + listed.UTC().Format(time.RFC3339) +
		", when the listing that was kept of the data set was made"
	if !s.Cached() || err == nil || err.Error() != want {
		t.Errorf("cached is %v, and the error %v, want %s", s.Cached(), err, want)
	}
	if s = open(t, root, o); s.Cached() {
		t.Error("the next snapshot is the old one")
	}
	_, err = s.Read(t.Context(), 0, nil)
	treetest.Must(t, err)
}

func TestManifestOfAnotherRoot(t *testing.T) {
	s := &Snapshot{path: "/elsewhere"}
	if err := s.use(memory{data: encoded(t, treetest.Grow(t, t.TempDir(), "a/x.jpg"))}); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v, want %v", err, ErrDamaged)
	}
}

// encoded is the manifest of a tree.
func encoded(t testing.TB, root string) []byte {
	t.Helper()
	o := options(t)
	open(t, root, o)
	data, err := os.ReadFile(manifestFile(t, o.CacheDir))
	treetest.Must(t, err)
	return data
}

// manifestFile is the only file of a cache.
func manifestFile(t testing.TB, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	treetest.Must(t, err)
	if len(files) != 1 || !strings.HasSuffix(files[0].Name(), ".manifest") {
		t.Fatalf("the cache has %v, want one manifest", files)
	}
	return filepath.Join(dir, files[0].Name())
}

func TestDamagedManifestIsMadeAnew(t *testing.T) {
	root, o := treetest.Grow(t, t.TempDir(), "a/x.jpg", "b/y.jpg"), options(t)
	want := open(t, root, o).Fingerprint()
	path := manifestFile(t, o.CacheDir)
	good, err := os.ReadFile(path)
	treetest.Must(t, err)
	foreign := encoded(t, treetest.Grow(t, t.TempDir(), "a/x.jpg"))
	for name, data := range map[string][]byte{
		"empty": {}, "short": good[:40], "cut": good[:len(good)-1], "foreign": foreign, "longer": append(good[:len(good):len(good)], 0),
		"flipped": append([]byte("FWSNAP2\n"), good[8:]...), "of version 1": append([]byte("fwsnap1\n"), good[8:]...), "zeros": make([]byte, len(good)),
	} {
		treetest.Must(t, os.WriteFile(path+".new", data, 0o600))
		treetest.Must(t, os.Rename(path+".new", path))
		s := open(t, root, o)
		if s.Cached() || s.Fingerprint() != want {
			t.Errorf("%s manifest: cached %v, fingerprint %s, want %s", name, s.Cached(), s.Fingerprint(), want)
		}
		if !open(t, root, o).Cached() {
			t.Errorf("%s manifest was not replaced", name)
		}
	}
	treetest.Must(t, os.Remove(path))
	treetest.Must(t, os.Mkdir(path, 0o700))
	if s := open(t, root, o); s.Cached() || s.Fingerprint() != want {
		t.Error("a folder in the manifest's place: not scanned")
	}
	manifestFile(t, o.CacheDir) // and nothing half done beside it
}

func TestCacheThatCannotBeWritten(t *testing.T) {
	root := treetest.Grow(t, t.TempDir(), "a/x.jpg")
	file := treetest.Grow(t, t.TempDir(), "file") + "/file"
	s := open(t, root, Options{CacheDir: file + "/below", now: later})
	if got := keys(t, s); len(got) != 1 {
		t.Errorf("samples %q", got)
	}
	for _, variable := range []string{"XDG_CACHE_HOME", "HOME"} {
		t.Setenv(variable, "")
	}
	s = open(t, root, Options{now: later})
	if got := keys(t, s); len(got) != 1 {
		t.Errorf("without a home: samples %q", got)
	}
}

func TestDefaultCacheDir(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	open(t, treetest.Grow(t, t.TempDir(), "a/x.jpg"), Options{now: later})
	manifestFile(t, home+"/feedwater/snapshots")
}

func TestLeftoversAreSweptUp(t *testing.T) {
	root, o := treetest.Grow(t, t.TempDir(), "a/x.jpg"), options(t)
	open(t, root, o)
	c := cache{name: filepath.Base(manifestFile(t, o.CacheDir))}
	var left [2]string
	for i := range left {
		f, err := c.create(o.CacheDir)
		treetest.Must(t, err)
		left[i] = f.Name()
		treetest.Must(t, f.Close())
	}
	old, young := left[0], left[1]
	treetest.Must(t, os.Chtimes(old, time.Time{}, time.Now().Add(-2*time.Hour)))
	o.Refresh = true
	open(t, root, o)
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old leftover is still there: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("another process's file is gone: %v", err)
	}
}

func TestManyOpenAtOnce(t *testing.T) {
	root, o := many(t, 2000, 100), options(t)
	type result struct {
		fingerprint string
		err         error
	}
	results := make(chan result)
	for i := range 8 {
		go func() {
			o := o
			o.Refresh = i%2 == 0
			s, err := Open(t.Context(), root, o)
			if err != nil {
				results <- result{err: err}
				return
			}
			_, err = s.At(s.Len()-1, nil)
			results <- result{s.Fingerprint(), errors.Join(err, s.Close())}
		}()
	}
	want := open(t, root, Options{CacheDir: t.TempDir()}).Fingerprint()
	for range 8 {
		r := <-results
		treetest.Must(t, r.err)
		if r.fingerprint != want {
			t.Errorf("fingerprint %s, want %s", r.fingerprint, want)
		}
	}
	manifestFile(t, o.CacheDir)
}

// TestTwoProcesses: this test is both the parent and, where the environment names a root, the children.
func TestTwoProcesses(t *testing.T) {
	const variable = "FEEDWATER_TEST_ROOT"
	if root := os.Getenv(variable); root != "" {
		for range 20 {
			o := Options{CacheDir: os.Getenv("FEEDWATER_TEST_CACHE"), Refresh: true, now: later}
			s := open(t, root, o)
			o.Refresh = false
			if again := open(t, root, o); s.Fingerprint() != again.Fingerprint() || !again.Cached() {
				t.Errorf("fingerprints %s, %s, cached %v", s.Fingerprint(), again.Fingerprint(), again.Cached())
			}
		}
		return
	}
	root, cache := many(t, 1000, 100), t.TempDir()
	ended := make(chan error)
	for range 3 {
		go func() {
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTwoProcesses$")
			c.Env = append(os.Environ(), variable+"="+root, "FEEDWATER_TEST_CACHE="+cache)
			out, err := c.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			ended <- err
		}()
	}
	for range 3 {
		treetest.Must(t, <-ended)
	}
	manifestFile(t, cache)
}

// Whatever somebody puts in a manifest's place, opening the data set does not wait for it.
func TestFIFOInAManifestsPlace(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "class"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "class", "a.jpg"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, newCache(Options{}, path).name), 0o600); err != nil {
		t.Skip(err)
	}
	s, err := Open(t.Context(), root, Options{CacheDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Cached() || s.Len() != 1 {
		t.Errorf("cached %v, %d samples", s.Cached(), s.Len())
	}
}
