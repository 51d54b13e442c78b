package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// Folders that are written into do not lie in class folders, also where a list of these is kept, and may lie beside them and beside shards and lists.
func TestApart(t *testing.T) {
	top := treetest.Grow(t, t.TempDir(), "data/a/1.jpg", "data/b/2.jpg", "listed/a/1.jpg", "link -> data")
	data := filepath.Join(top, "data")
	treetest.Must(t, os.WriteFile(filepath.Join(top, "listed", "l.csv"), []byte("path,label\na/1.jpg,x\n"), 0o600))
	open := func(place, folder string) error {
		s, err := Open(t.Context(), place, Options{CacheDir: filepath.Join(top, "lists"), Apart: []Apart{
			{"the first", func() string { return "/elsewhere" }}, {"the second", func() string { return folder }},
		}})
		if err == nil {
			err = s.Close()
		}
		return err
	}
	for range 2 { // the first time the list is kept
		for _, folder := range []string{data, filepath.Join(data, "a"), filepath.Join(data, "index", "x")} {
			for _, place := range []string{data, filepath.Join(top, "link")} {
				err := open(place, folder)
				var apart *ApartError
				if !errors.As(err, &apart) || !errors.Is(err, ErrLayout) || apart.What != "the second" || !strings.Contains(err.Error(), folder) {
					t.Errorf("%s in %s: %v", folder, place, err)
				}
			}
		}
		if names, err := os.ReadDir(data); err != nil || len(names) != 2 {
			t.Errorf("written: %v, %v", names, err)
		}
		for folder, place := range map[string]string{
			filepath.Join(top, "index"):           data,
			data + "2":                            data,
			top:                                   data,
			filepath.Join(top, "listed", "index"): filepath.Join(top, "listed", "l.csv"),
		} {
			if err := open(place, folder); err != nil {
				t.Errorf("%s beside %s: %v", folder, place, err)
			}
		}
	}
}
