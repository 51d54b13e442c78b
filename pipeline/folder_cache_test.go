package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

// A folder for lists that does not answer is sick by itself, although it lies in a root: data sets are listed without it, and none of their storage
// is blamed.
func TestFolderOfListsThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		roots := bulkhead.New(bulkhead.Options{Deadline: 100 * time.Millisecond, Patience: time.Millisecond, ProbeEvery: time.Hour})
		defer roots.Close()
		dir, private := folder(t), t.TempDir()
		if err := os.Chmod(private, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("XDG_RUNTIME_DIR", private)
		data := roots.Add("data", dir)
		cache := roots.Apart(filepath.Join(dir, "lists"))
		never := make(chan struct{})
		t.Cleanup(func() { close(never) })
		_, err := bulkhead.Do(t.Context(), data, "list", func(alive func()) (any, error) { // as OpenFolder does
			return callFolder(cache, alive)(t.Context(), "look for the list", func() (any, error) { <-never; return 0, nil }, nil)
		}, nil)
		var hung *bulkhead.HungError
		if !errors.As(err, &hung) || hung.Root != cache.Name() || data.Sick() || !cache.Sick() {
			t.Fatalf("%v; the data's root is sick: %v", err, data.Sick())
		}
		var told error
		s, err := OpenFolder(t.Context(), roots, dir, dataset.Options{CacheDir: cache.Name(), Trouble: func(err error) { told = err }})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if !errors.As(told, &hung) || hung.Root != cache.Name() {
			t.Errorf("told %v", told)
		}
		if _, err := os.Stat(cache.Name()); err == nil {
			t.Error("the folder for lists was made")
		}
	})
}
