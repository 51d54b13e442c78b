package pipeline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

// A list that is cut short while a job uses it is this machine's trouble: the error names the sample by its number, and says what becomes of the list.
func TestListIsDamagedUnderAJob(t *testing.T) {
	cache := t.TempDir()
	s, err := dataset.Open(t.Context(), folder(t), dataset.Options{CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, err := Open(Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	plan, err := ParsePlan([]byte(`{"transforms": [{"op": "Resize", "size": [8, 8]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	j, err := p.Prepare(plan, s)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := filepath.Glob(cache + "/*")
	if err != nil || len(lists) == 0 {
		t.Fatal(lists, err)
	}
	for _, list := range lists {
		if info, err := os.Stat(list); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			if err := os.Truncate(list, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, r := fetch(t, j, batch.Name{Count: 1})
	var read *ReadError
	if !errors.As(r.Err, &read) || read.Key != "" || !errors.Is(r.Err, dataset.ErrDamaged) {
		t.Fatalf("%v, want a ReadError without a key that wraps ErrDamaged", r.Err)
	}
	want := fmt.Sprintf("read sample %d: the list that was kept of the data set is damaged, and is made anew when the data set is opened next", read.Index)
	if got := read.Error(); len(got) < len(want) || got[:len(want)] != want {
		t.Errorf("%q, want %q", got, want)
	}
}
