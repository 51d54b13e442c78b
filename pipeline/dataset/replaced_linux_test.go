//go:build linux && !portable

package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// TestShardIsReplacedWithItsTime: a shard that another one of the same size and time takes the place of, as by rsync -a, is
// no data any more, from a scan and from a kept list; one whose mode is set, or that is renamed, is.
func TestShardIsReplacedWithItsTime(t *testing.T) {
	root, o := t.TempDir(), Options{CacheDir: t.TempDir()}
	shard := filepath.Join(root, "a.parquet")
	copyParquet(t, "plain", shard)
	long := time.Unix(1e9, 0)
	treetest.Must(t, os.Chtimes(shard, long, long))
	o.now = func() time.Time { return time.Now().Add(time.Minute) } // so that the list is trusted
	scanned, kept := openParquet(t, shard, o), openParquet(t, shard, o)
	if scanned.cached || !kept.cached {
		t.Fatal("the second one is of no kept list")
	}
	before := changedAt(t, shard)
	for changedAt(t, shard) == before { // in the steps that the kernel counts time in
		treetest.Must(t, os.Chmod(shard, 0o640))
	}
	treetest.Must(t, os.Rename(shard, shard+".old"))
	treetest.Must(t, os.Rename(shard+".old", shard))
	for _, s := range []*Snapshot{scanned, kept} {
		if _, err := s.Read(t.Context(), 4, nil); err != nil {
			t.Errorf("after chmod and a rename: %v", err)
		}
	}
	copyParquet(t, "plain", shard+".new")
	treetest.Must(t, os.Chtimes(shard+".new", long, long))
	treetest.Must(t, os.Rename(shard+".new", shard))
	for _, s := range []*Snapshot{scanned, kept} {
		var changed *ChangedError
		if _, err := s.Read(t.Context(), 4, nil); !errors.As(err, &changed) || !strings.Contains(err.Error(), "is another file than was listed") {
			t.Error(err)
		}
	}
	if s := openParquet(t, shard, o); s.cached {
		t.Error("the list of before is used")
	} else if _, err := s.Read(t.Context(), 4, nil); err != nil {
		t.Error(err)
	}
}

// changedAt is when the kernel says that a file was changed.
func changedAt(t *testing.T, path string) int64 {
	t.Helper()
	fi, err := os.Stat(path)
	treetest.Must(t, err)
	st, _ := fi.Sys().(*syscall.Stat_t)
	return st.Ctim.Nano()
}

// TestUnpackedPagesOfReplacedFiles: what was unpacked of a file is not taken for that of one of the same size and time.
func TestUnpackedPagesOfReplacedFiles(t *testing.T) {
	s := &Snapshot{}
	one := store.Object{Name: []byte("a.parquet"), Size: 7, Modified: 1, Inode: 2, Changed: 3}
	other := one
	other.Changed = 4
	if s.key(&one, "p", 0, 7) == s.key(&other, "p", 0, 7) {
		t.Error("one key for both")
	}
}
