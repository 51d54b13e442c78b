package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// copyParquet copies a file of parquet/testdata.
func copyParquet(t testing.TB, from, to string) {
	t.Helper()
	data, err := os.ReadFile("parquet/testdata/" + from + ".parquet")
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestParquetFolder: rows are read out of the files, a file that is added is found, and one that is written again is no data.
func TestParquetFolder(t *testing.T) {
	root, o := t.TempDir(), Options{CacheDir: t.TempDir()}
	first := filepath.Join(root, "train-00000-of-00002.parquet")
	copyParquet(t, "plain", first)
	s := openParquet(t, root, o)
	if s.Len() != 10 || len(s.Classes()) != 3 {
		t.Fatalf("%d samples of %d classes", s.Len(), len(s.Classes()))
	}
	data, err := s.Read(t.Context(), 4, nil)
	if want := "picture 4 " + strings.Repeat("e", 30); err != nil || string(data) != want {
		t.Errorf("%q, %v", data, err)
	}
	copyParquet(t, "v2", filepath.Join(root, "train-00001-of-00002.parquet"))
	if s := openParquet(t, root, o); s.Len() != 20 {
		t.Errorf("%d samples, with another file", s.Len())
	}
	copyParquet(t, "dictionary", first)
	var changed *ChangedError
	if _, err := s.Read(t.Context(), 4, nil); !errors.As(err, &changed) || !strings.Contains(err.Error(), "lies in train-00000-of-00002.parquet, which has") {
		t.Error(err)
	}
}

func openParquet(t *testing.T, place string, o Options) *Snapshot {
	t.Helper()
	s, err := Open(t.Context(), place, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestPatternFindsAddedFiles: what a pattern stands for is looked at when a list of it is opened again.
func TestPatternFindsAddedFiles(t *testing.T) {
	root, o := t.TempDir(), Options{CacheDir: t.TempDir()}
	copyParquet(t, "plain", filepath.Join(root, "a.parquet"))
	if s := openParquet(t, filepath.Join(root, "?.parquet"), o); s.Len() != 10 || s.Cached() {
		t.Errorf("%d samples, kept: %v", s.Len(), s.Cached())
	}
	copyParquet(t, "plain", filepath.Join(root, "b.parquet"))
	if s := openParquet(t, filepath.Join(root, "?.parquet"), o); s.Len() != 20 {
		t.Errorf("%d samples, with another file", s.Len())
	}
}
