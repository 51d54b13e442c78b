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

// TestWhyUnlabelled: where samples have no labels it is said where these would have been, also of a list that was kept.
func TestWhyUnlabelled(t *testing.T) {
	root, o := t.TempDir(), settled(t)
	for _, name := range []string{"int96", "no_labels", "unlabelled", "plain"} {
		copyParquet(t, name, filepath.Join(root, name+".parquet"))
	}
	for name, text := range map[string]string{
		"a.csv": "path,kind\nplain.parquet,1\n", "b.csv": "path,label\nplain.parquet,\n", "c.csv": "plain.parquet\n", "d.jsonl": `{"path": "plain.parquet"}`,
		"e.txt": "path,secret\nplain.parquet,1\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, says := range map[string]string{
		"int96.parquet":      "the column label has neither whole numbers nor texts, one in each row, but INT96",
		"no_labels.parquet":  "no column is called label, labels, class, target, cls, fine_label; there are image",
		"unlabelled.parquet": "the column kind has none",
		"plain.parquet":      "",
		"a.csv":              "no column is called label, class, target; there are path, kind",
		"b.csv":              "the column of labels is empty",
		"c.csv":              "each line has one field",
		"d.jsonl":            "no object has one of label, class, target",
		"e.txt":              "no column is called label, class, target",
	} {
		o.Layout = map[bool]string{true: "csv"}[name == "e.txt"]
		for _, kept := range []bool{false, true} {
			s := openParquet(t, filepath.Join(root, name), o)
			if s.WhyUnlabelled() != says || s.Unlabelled() != (says != "") || kept && !s.Cached() {
				t.Errorf("%s: %q, want %q; cached: %v", name, s.WhyUnlabelled(), says, s.Cached())
			}
		}
	}
}
