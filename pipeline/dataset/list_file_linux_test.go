//go:build !portable

package dataset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// nowhere are options of a process that can keep its lists in no folder. Each KeepError is added to told.
func nowhere(t testing.TB, told *[]*KeepError) Options {
	t.Helper()
	file := treetest.Grow(t, t.TempDir(), "file") + "/file"
	t.Setenv("XDG_RUNTIME_DIR", file)
	return Options{CacheDir: file + "/below", sharedMemory: file, now: later, Trouble: func(err error) {
		k, ok := errors.AsType[*KeepError](err)
		if !ok {
			t.Errorf("told %v", err)
		}
		*told = append(*told, k)
	}}
}

// TestListsOfTheProcess: where no folder takes the list, the process keeps it, finds it as long as the folders are the
// same, and says so.
func TestListsOfTheProcess(t *testing.T) {
	var told []*KeepError
	root, o := treetest.Grow(t, t.TempDir(), "a/x.jpg", "b/y.jpg"), nowhere(t, &told)
	first := open(t, root, o)
	if second := open(t, root, o); first.Cached() || !second.Cached() || !sameLists(first.manifest, second.manifest) {
		t.Errorf("cached %v, then %v", first.Cached(), second.Cached())
	}
	if len(told) != 1 || told[0].Folder != "" || !errors.Is(told[0], fs.ErrNotExist) && !strings.Contains(told[0].Error(), "not a directory") {
		t.Errorf("told %v", told)
	}
	treetest.Grow(t, root, "a/new.jpg")
	if third := open(t, root, o); third.Cached() || third.Len() != 3 {
		t.Errorf("after a change: cached %v, %d samples", third.Cached(), third.Len())
	}
	treetest.Must(t, os.WriteFile(root+"/a/new.jpg", []byte("in place"), 0o600))
	if _, err := open(t, root, o).Read(t.Context(), 0, nil); err == nil {
		t.Error("a file that was written in place was read")
	}
	if open(t, root, o).Cached() {
		t.Error("the list of before was not forgotten")
	}
}

// TestListsOfTheProcessAreBounded: those that were used last stay.
func TestListsOfTheProcessAreBounded(t *testing.T) {
	l := lists{limit: 10}
	for _, name := range []string{"a", "b", "c"} {
		l.put(name, make([]byte, 4))
		l.get("a")
	}
	l.put("a", make([]byte, 3))
	if l.get("a") == nil || l.get("b") != nil || l.get("c") == nil {
		t.Errorf("kept %v", l.all)
	}
	l.put("large", make([]byte, 20))
	if l.get("large") == nil || len(l.all) != 1 {
		t.Errorf("kept %v", l.all)
	}
}

// TestPrivateFolder: where the cache folder cannot be written, a folder that nobody else can enter is used, and nothing
// that somebody planted there.
func TestPrivateFolder(t *testing.T) {
	mine := "feedwater-" + strconv.Itoa(os.Geteuid())
	for _, test := range []struct {
		name  string
		plant func(t *testing.T, runtime, memory string) // what is there before
		in    string                                     // where the list is kept; "" for nowhere
	}{
		{"runtime folder", func(*testing.T, string, string) {}, "runtime/feedwater/snapshots"},
		{"runtime folder of all", func(t *testing.T, runtime, _ string) { treetest.Must(t, os.Chmod(runtime, 0o755)) }, "memory/" + mine + "/snapshots"},
		{"no runtime folder", func(t *testing.T, runtime, _ string) { treetest.Must(t, os.Remove(runtime)) }, "memory/" + mine + "/snapshots"},
		{"runtime folder is a link", func(t *testing.T, runtime, _ string) {
			treetest.Must(t, os.Rename(runtime, runtime+".real"))
			treetest.Must(t, os.Symlink(runtime+".real", runtime))
		}, "memory/" + mine + "/snapshots"},
		{"planted link", func(t *testing.T, runtime, memory string) {
			treetest.Must(t, os.Remove(runtime))
			treetest.Must(t, os.Mkdir(memory+".of-others", 0o700))
			treetest.Must(t, os.Symlink(memory+".of-others", memory+"/"+mine))
		}, ""},
		{"planted link below", func(t *testing.T, runtime, memory string) {
			treetest.Must(t, os.Mkdir(runtime+"/feedwater", 0o700))
			treetest.Must(t, os.Mkdir(memory+".of-others", 0o700))
			treetest.Must(t, os.Symlink(memory+".of-others", runtime+"/feedwater/snapshots"))
		}, ""},
		{"folder that others may read", func(t *testing.T, runtime, memory string) {
			treetest.Must(t, os.Remove(runtime))
			treetest.Must(t, os.Mkdir(memory+"/"+mine, 0o700))
			treetest.Must(t, os.Chmod(memory+"/"+mine, 0o750))
		}, ""},
		{"others may exchange it", func(t *testing.T, runtime, memory string) {
			treetest.Must(t, os.Remove(runtime))
			treetest.Must(t, os.Chmod(memory, 0o777))
		}, ""},
		{"file", func(t *testing.T, runtime, memory string) {
			treetest.Must(t, os.Remove(runtime))
			treetest.Grow(t, memory, mine)
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			base := t.TempDir()
			var told []*KeepError
			o := nowhere(t, &told)
			o.sharedMemory = base + "/memory"
			treetest.Must(t, os.Mkdir(base+"/runtime", 0o700))
			treetest.Must(t, os.Mkdir(o.sharedMemory, 0o700))
			treetest.Must(t, os.Chmod(o.sharedMemory, 0o777|fs.ModeSticky))
			t.Setenv("XDG_RUNTIME_DIR", base+"/runtime")
			test.plant(t, base+"/runtime", o.sharedMemory)
			root := treetest.Grow(t, t.TempDir(), "a/x.jpg")
			open(t, root, o)
			want := ""
			if test.in != "" {
				want = base + "/" + test.in
				manifestFile(t, want)
			}
			if len(told) != 1 || told[0].Folder != want {
				t.Errorf("told %v, want that it is kept in %q", told, want)
			}
			if !open(t, root, o).Cached() {
				t.Error("it was scanned again")
			}
			if left, err := os.ReadDir(o.sharedMemory + ".of-others"); err == nil && len(left) > 0 {
				t.Errorf("written through a planted link: %v", left)
			}
		})
	}
}

// TestFolderOfSomebodyElse needs the right to give folders away; others see by the mode alone that a planted folder is
// none of theirs.
func TestFolderOfSomebodyElse(t *testing.T) {
	dir := t.TempDir() + "/feedwater"
	treetest.Must(t, os.Mkdir(dir, 0o700))
	if err := os.Chown(dir, os.Geteuid()+1, -1); errors.Is(err, fs.ErrPermission) {
		return
	} else if err != nil {
		t.Fatal(err)
	}
	if err := checkPrivate(dir); err == nil {
		t.Error("a folder of somebody else is taken for one's own")
	}
}

// TestOneScanOfMany: of eight that open a data set at once in one process, where no folder can be written, one scans.
func TestOneScanOfMany(t *testing.T) {
	var told []*KeepError
	root, o := many(t, 3000, 300), nowhere(t, &told)
	o.now = nil // what was written just now is trusted, since the scan began after
	synctest.Test(t, func(t *testing.T) {
		o := o
		o.slow = func() { time.Sleep(time.Millisecond) }
		results := make(chan bool, 8)
		for range 8 {
			go func() {
				s, err := Open(t.Context(), root, o)
				treetest.Must(t, err)
				results <- s.Cached()
				treetest.Must(t, s.Close())
			}()
		}
		scans := 0
		for range 8 {
			if !<-results {
				scans++
			}
		}
		if scans != 1 {
			t.Errorf("%d scans of 8", scans)
		}
	})
}

// TestOneScanOfManyProcesses: this test is the parent and, where the environment names a root, the eight ranks of a
// machine, whose cache cannot be written.
func TestOneScanOfManyProcesses(t *testing.T) {
	const variable = "FEEDWATER_TEST_RANK_ROOT"
	if root := os.Getenv(variable); root != "" {
		s := open(t, root, Options{now: later})
		fmt.Printf("cached: %v, %s\n", s.Cached(), s.Fingerprint())
		return
	}
	root, runtime := many(t, 5000, 500), t.TempDir()
	treetest.Must(t, os.Chmod(runtime, 0o700))
	ended := make(chan string, 8)
	for range 8 {
		go func() {
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOneScanOfManyProcesses$")
			c.Env = append(os.Environ(), variable+"="+root, "HOME=", "XDG_CACHE_HOME=", "FEEDWATER_TEST_RUNTIME="+runtime)
			out, err := c.CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
			ended <- string(out)
		}()
	}
	scans, all := 0, map[string]bool{}
	for range 8 {
		out := <-ended
		scans += strings.Count(out, "cached: false")
		_, fingerprint, _ := strings.Cut(strings.SplitN(out, "\n", 2)[0], ", ")
		all[fingerprint] = true
	}
	if scans != 1 || len(all) != 1 {
		t.Errorf("%d scans of 8 processes, fingerprints %v", scans, all)
	}
	manifestFile(t, runtime+"/feedwater/snapshots") // and no lock
}

// held is a scan of another process: its lock file, locked.
func held(t *testing.T, o Options, root string) *os.File {
	t.Helper()
	c := newCache(o.withDefaults(), root)
	f, others := tryLock(c.lockPath(t.Context()))
	if f == nil {
		t.Fatalf("not locked, others %v", others)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestScanElsewhere: whoever waits for another process's scan tells how far it is, ends when his context does, and goes
// on by himself when it stands still.
func TestScanElsewhere(t *testing.T) {
	root, o := treetest.Grow(t, t.TempDir(), "a/x.jpg"), options(t)
	f := held(t, o, root)
	synctest.Test(t, func(t *testing.T) {
		o := o
		var told []int
		began := time.Now()
		o.Progress = func(n int) {
			told = append(told, n)
			if n == 4096 {
				_, _ = f.WriteAt([]byte("8192"), 0)
				began = time.Now()
			}
		}
		_, err := f.WriteAt([]byte("4096"), 0)
		treetest.Must(t, err)
		s, err := Open(t.Context(), root, o)
		treetest.Must(t, err)
		treetest.Must(t, s.Close())
		if took := time.Since(began); took < time.Minute || took > 2*time.Minute {
			t.Errorf("it waited %v for a scan that stood still", took)
		}
		if fmt.Sprint(told) != "[4096 8192 1]" {
			t.Errorf("told %v", told)
		}
		ctx, cancel := context.WithCancel(t.Context())
		o.Progress, o.Refresh = func(int) { cancel() }, true
		if _, err := Open(ctx, root, o); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want %v", err, context.Canceled)
		}
	})
}

// TestScanOfOneWhoWasKilled: a lock file that nobody holds is no scan.
func TestScanOfOneWhoWasKilled(t *testing.T) {
	root, o := treetest.Grow(t, t.TempDir(), "a/x.jpg"), options(t)
	path := held(t, o, root).Name()
	treetest.Must(t, os.WriteFile(path+".copy", []byte("4096"), 0o600))
	treetest.Must(t, os.Rename(path+".copy", path)) // the one that is locked is gone
	o.Progress = func(n int) {
		if n != 1 {
			t.Errorf("told %d", n)
		}
	}
	open(t, root, o)
	manifestFile(t, o.CacheDir)
}

// TestLimitOfLists: lists that were not opened for longest make room; files of others stay.
func TestLimitOfLists(t *testing.T) {
	o := options(t)
	others := treetest.Grow(t, o.CacheDir, "notes.manifest")
	treetest.Must(t, os.Chmod(others, 0o700))
	var roots []string
	for i := range 4 {
		roots = append(roots, treetest.Grow(t, t.TempDir(), fmt.Sprintf("a/%d.jpg", i)))
	}
	open(t, roots[0], o)
	files, err := filepath.Glob(o.CacheDir + "/[0-9a-f]*.manifest")
	treetest.Must(t, err)
	fi, err := os.Stat(files[0])
	treetest.Must(t, err)
	o.CacheBytes = 3*fi.Size() + 60 // paths differ in length
	for i, root := range roots[1:] {
		open(t, root, o)
		if i == 1 {
			age(t, o.CacheDir)
			if !open(t, roots[0], o).Cached() { // used again
				t.Fatal("the first was dropped too early")
			}
		}
	}
	o.Trouble = func(error) {}
	for i, want := range []bool{true, false, true, true} {
		c := newCache(o.withDefaults(), roots[i])
		if _, err := os.Stat(filepath.Join(o.CacheDir, c.name)); (err == nil) != want {
			t.Errorf("list %d: %v, want it kept: %v", i, err, want)
		}
	}
	if _, err := os.Stat(o.CacheDir + "/notes.manifest"); err != nil {
		t.Error(err)
	}
	o.CacheBytes, o.Refresh = 10, true
	var cause error
	o.Trouble = func(err error) { cause = err }
	open(t, roots[0], o)
	if !errors.Is(cause, errNoRoom) {
		t.Errorf("told %v, want %v", cause, errNoRoom)
	}
}

// age makes all lists of a folder older, in the order in which they were opened.
func age(t *testing.T, dir string) {
	files, err := filepath.Glob(dir + "/*.manifest")
	treetest.Must(t, err)
	for _, file := range files {
		fi, err := os.Stat(file)
		treetest.Must(t, err)
		treetest.Must(t, os.Chtimes(file, time.Time{}, fi.ModTime().Add(-time.Hour)))
	}
}
