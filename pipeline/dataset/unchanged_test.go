package dataset

import (
	"os"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// A snapshot is the same as a later one as long as nothing was touched, whether that one was scanned or came from the
// cache.
func TestSame(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(root string) error
		refresh bool
		want    bool
	}{
		"untouched":          {want: true},
		"untouched, scanned": {refresh: true, want: true},
		"written with the same size": {refresh: true, change: func(root string) error {
			return os.Chtimes(root+"/a/x.jpg", time.Time{}, time.Unix(1e9, 0))
		}},
		"added":   {change: func(root string) error { return os.WriteFile(root+"/a/z.jpg", []byte("z"), 0o600) }},
		"renamed": {change: func(root string) error { return os.Rename(root+"/a/x.jpg", root+"/a/w.jpg") }},
		"exchanged for a copy": {change: func(root string) error {
			if err := os.Rename(root, root+".old"); err != nil {
				return err
			}
			return os.CopyFS(root, os.DirFS(root+".old"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			root, o := t.TempDir()+"/root", options(t)
			treetest.Grow(t, root, "a/x.jpg", "a/b/y.jpg", "c/z.jpg")
			first := open(t, root, o)
			if c.change != nil {
				treetest.Must(t, c.change(root))
			}
			later := o
			later.Refresh = c.refresh
			second := open(t, root, later)
			if got := first.Same(second); got != c.want {
				t.Errorf("same: %v", got)
			}
			treetest.Must(t, second.Close())
			if first.Same(second) || second.Same(first) {
				t.Error("the same as one that is closed")
			}
		})
	}
}
