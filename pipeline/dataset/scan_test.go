package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

func TestPhotographs(t *testing.T) {
	root := photos(t)
	if root == "" {
		root = treetest.Grow(t, t.TempDir(), "a/1.jpg", "b/2.jpg")
	}
	s := open(t, root, options(t))
	if got, want := lines(t, s), imageFolder(t, root); !slices.Equal(got, want) {
		t.Error(differing(got, want))
	}
	var buf []byte
	for i := range s.Len() {
		sample, err := s.At(i, nil)
		treetest.Must(t, err)
		buf, err = s.Read(t.Context(), i, buf)
		treetest.Must(t, err)
		want, err := os.ReadFile(filepath.Join(root, string(sample.Key)))
		treetest.Must(t, err)
		if !bytes.Equal(buf, want) {
			t.Errorf("%s: other bytes", sample.Key)
		}
	}
}

func TestFoldersThatAreNoImageFolder(t *testing.T) {
	for _, test := range []struct {
		name string
		tree []string
		want []string
	}{
		{"empty", nil, []string{"<root>/<class>/<picture>"}},
		{"other files", []string{"notes.txt"}, []string{"<root>/<class>/<picture>"}},
		{"loose pictures", []string{"b.jpg", "a.JPG", "c.txt"}, []string{"2 pictures", "a.JPG", "<root>/<class>/<picture>"}},
		{"empty class", []string{"a/x.jpg", "b/", "c/x.txt", "d/x/y/"}, []string{"folder b, c, d;", ".jpeg"}},
		{"hidden class", []string{"a/x.jpg", ".ipynb_checkpoints/"}, []string{".ipynb_checkpoints"}},
		{"many empty classes", []string{"1/", "2/", "3/", "4/", "5/", "6/", "7/", "8/x.jpg"}, []string{"1, 2, 3, 4, 5 and 2 more"}},
	} {
		_, err := Open(t.Context(), treetest.Grow(t, t.TempDir(), test.tree...), options(t))
		if !errors.Is(err, ErrLayout) {
			t.Errorf("%s: %v, want %v", test.name, err, ErrLayout)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", test.name, err, want)
			}
		}
	}
}

func TestTreesThatCannotBeRead(t *testing.T) {
	for _, test := range []struct {
		name string
		tree []string
		want string
		is   error
	}{
		{"loop", []string{"a/x.jpg", "a/loop -> ."}, "a/loop leads back", ErrLayout},
		{"loop to the class", []string{"a/x.jpg", "a/b/c/up -> ../.."}, `a/b/c/up leads back to the folder "a" that holds it: remove`, ErrLayout},
		{"loop to the root", []string{"a/x.jpg", "a/up -> .."}, "a/up leads back to the root of the data: remove", ErrLayout},
		{"class is the root", []string{"a/x.jpg", "b -> ."}, "b leads back", ErrLayout},
		{"two classes", []string{"a/x.jpg", "a/b -> ../b", "b/x.jpg", "b/a -> ../a"}, "leads back", ErrLayout},
		{"picture that leads nowhere", []string{"a/x.jpg", "a/y.jpg -> nowhere"}, "a/y.jpg: no such file or directory: the link leads nowhere; remove it", fs.ErrNotExist},
		{"picture in a circle", []string{"a/x.jpg", "a/y.jpg -> y.jpg"}, "a/y.jpg", syscall.ELOOP},
		{"picture that is a device", []string{"a/x.jpg", "a/y.jpg -> /dev/null"}, "a/y.jpg: not a regular file", ErrLayout},
	} {
		_, err := Open(t.Context(), treetest.Grow(t, t.TempDir(), test.tree...), options(t))
		if err == nil || !strings.Contains(err.Error(), test.want) || !errors.Is(err, test.is) {
			t.Errorf("%s: %v, want %q, which is %q", test.name, err, test.want, test.is)
		}
	}
}

func TestRootThatIsNone(t *testing.T) {
	dir := treetest.Grow(t, t.TempDir(), "file")
	for _, name := range []string{"missing", "file", "file/below"} {
		path := filepath.Join(dir, name)
		if _, err := Open(t.Context(), path, options(t)); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(t.Context(), filepath.Join(dir, "missing"), options(t)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want %v", err, os.ErrNotExist)
	}
}

// many makes n pictures in classes of perClass.
func many(t testing.TB, n, perClass int) string {
	root := t.TempDir()
	source := filepath.Join(t.TempDir(), "x")
	treetest.Must(t, os.WriteFile(source, []byte("x"), 0o600))
	for i := range n {
		class := filepath.Join(root, fmt.Sprint(i/perClass))
		if i%perClass == 0 {
			treetest.Must(t, os.Mkdir(class, 0o700))
		}
		treetest.Must(t, os.Link(source, filepath.Join(class, fmt.Sprintf("%d.jpg", i))))
	}
	return root
}

func TestProgress(t *testing.T) {
	t.Run("many folders", func(t *testing.T) { progressed(t, 10_000, 100) })
	t.Run("one folder", func(t *testing.T) { progressed(t, 10_000, 10_000) })
}

func progressed(t *testing.T, n, perClass int) {
	root, o := many(t, n, perClass), options(t)
	var told []int
	o.Progress = func(samples int) { told = append(told, samples) }
	open(t, root, o)
	if len(told) < 3 || len(told) > 4 || !slices.IsSorted(told) || told[len(told)-1] != n {
		t.Errorf("told %v, want some numbers that grow to %d", told, n)
	}
	told = nil
	open(t, root, o)
	if told != nil {
		t.Errorf("told %v with a good manifest", told)
	}
}

func TestCancel(t *testing.T) {
	t.Run("many folders", func(t *testing.T) { cancelled(t, many(t, 10_000, 100)) })
	t.Run("one folder", func(t *testing.T) { cancelled(t, many(t, 10_000, 10_000)) })
}

// cancelled cancels the scan of a folder when it tells of its progress first. It must tell no more.
func cancelled(t *testing.T, root string) {
	o := options(t)
	before := handles(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := 0
	o.Progress = func(int) {
		cancel()
		told++
	}
	if _, err := Open(ctx, root, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want %v", err, context.Canceled)
	}
	if told != 1 {
		t.Errorf("the scan told of its progress %d times", told)
	}
	if left, err := os.ReadDir(o.CacheDir); err != nil || len(left) > 0 {
		t.Errorf("left in the cache: %v, %v", left, err)
	}
	if after := handles(t); after != before {
		t.Errorf("%d open handles, were %d", after, before)
	}
	if _, err := Open(ctx, root, o); !errors.Is(err, context.Canceled) {
		t.Errorf("of a cancelled context: %v, want %v", err, context.Canceled)
	}
}

// TestCancelAtTheEnd: when all readers are through, a class whose turn has not come must not be lost in silence.
func TestCancelAtTheEnd(t *testing.T) {
	root := many(t, 4096, 2048)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		o := options(t)
		o.Progress = func(int) { cancel() } // at the last file of the last class
		if _, err := Open(ctx, root, o); !errors.Is(err, context.Canceled) {
			t.Fatalf("%v, want %v", err, context.Canceled)
		}
		cancel()
	}
}

// TestNobodyWaitsForTheList: a scan that was left to itself while it waited for a server writes nothing any more.
func TestNobodyWaitsForTheList(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := options(t)
	o.CacheDir = filepath.Join(o.CacheDir, "lists")
	c := newCache(o, t.TempDir())
	if _, err := c.begin(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	if _, err := os.Stat(o.CacheDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of lists: %v", err)
	}
}

// handles counts what the process has open; 0 on systems that do not say.
func handles(t testing.TB) int {
	open, err := os.ReadDir("/proc/self/fd")
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	treetest.Must(t, err)
	return len(open)
}
