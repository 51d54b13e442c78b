//go:build !portable

package dataset

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// TestListMovesOn: a list of which half is written when its folder fails is kept in the private folder, whether that
// half can be read back or the scan has to begin anew. It is the same list, and nothing is left behind.
func TestListMovesOn(t *testing.T) {
	root := many(t, 6000, 100)
	want := open(t, root, options(t)).Fingerprint()
	for name, broken := range map[string][]string{
		"write": {"write the list"}, "keep": {"keep the list"}, "write and read back": {"write the list", "read the list"},
		"keep and read back": {"keep the list", "read the list"},
	} {
		t.Run(name, func(t *testing.T) {
			var told []*KeepError
			o := nowhere(t, &told)
			o.sharedMemory, o.CacheDir = t.TempDir(), t.TempDir()
			treetest.Must(t, os.Chmod(o.sharedMemory, 0o700))
			fails, writes := errors.New("it fails"), 0
			o.CallFolder = func(_ context.Context, op string, call func() (any, error), _ func(any)) (any, error) {
				if op == "write the list" {
					writes++
				}
				if slices.Contains(broken, op) && (op != "write the list" || writes > 1) {
					return nil, fails
				}
				return call()
			}
			s := open(t, root, o)
			if s.Cached() || s.Fingerprint() != want || s.Len() != 6000 {
				t.Errorf("cached %v, %d samples", s.Cached(), s.Len())
			}
			if len(told) != 1 || told[0].Folder == "" || !errors.Is(told[0], fails) {
				t.Errorf("told %v", told)
			}
			if left, err := filepath.Glob(o.CacheDir + "/*"); err != nil || len(left) > 0 {
				t.Errorf("%v is left, %v", left, err)
			}
			if !open(t, root, o).Cached() {
				t.Error("the list is not found again")
			}
		})
	}
}
