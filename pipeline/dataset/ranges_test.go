package dataset

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// inFiles is a folder of two files with pictures in them, and the table of these.
func inFiles(t *testing.T, rows ...string) (root, table string) {
	t.Helper()
	root, table = t.TempDir(), t.TempDir()+"/table"
	treetest.Must(t, os.Mkdir(root+"/deep", 0o700))
	treetest.Must(t, os.WriteFile(root+"/x.arrow", []byte("head AAA BB tail"), 0o600))
	treetest.Must(t, os.WriteFile(root+"/deep/y.arrow", []byte("CCCC"), 0o600))
	treetest.Must(t, os.WriteFile(table, []byte(strings.Join(rows, "\n")), 0o600))
	return root, table
}

// TestRangesOfFiles: a table may name ranges of files, in any order and some of them twice, on a disk and on servers; all have one fingerprint.
func TestRangesOfFiles(t *testing.T) {
	root, table := inFiles(t, `{"class_name": "cat"}`, `{"class_name": "dog"}`,
		`{"path": "x.arrow", "range": [9, 2], "label": 1}`, `{"path": "deep/y.arrow", "range": [0, 4], "label": 0}`,
		`{"path": "x.arrow", "range": [5, 3], "label": 0}`, `{"path": "x.arrow", "range": [9, 2], "label": 0}`)
	server := buckettest.OfFolder(t, root)
	o := settled(t)
	o.Table = table
	here := opened(t, root, o)
	want := tellAll(t, here)
	for _, line := range []string{"x.arrow/9-2 1 2 BB\n", "deep/y.arrow/0-4 0 4 CCCC\n", "x.arrow/5-3 0 3 AAA\n", "x.arrow/9-2 0 2 BB\n"} {
		if !strings.Contains(want, line) {
			t.Errorf("%q is not in\n%s", line, want)
		}
	}
	for _, place := range []string{server.Place("p"), server.Plain("p")} {
		if got := tellAll(t, opened(t, place, o)); got != want {
			t.Errorf("%s has\n%s, want\n%s", place, got, want)
		}
	}
	if again := opened(t, root, o); !again.Cached() {
		t.Error("the list is not found again")
	}
	treetest.Must(t, os.WriteFile(root+"/x.arrow", []byte("head XXX YY tail"), 0o600))
	if again := opened(t, root, o); again.Cached() {
		t.Error("the list is used again after a file was written anew")
	}
	var changed *ChangedError
	if _, err := here.Read(t.Context(), 0, nil); !errors.As(err, &changed) {
		t.Errorf("of a file that was written anew: %v", err)
	}
}

// TestRangesThatAreNone: what is wrong is named with its row.
func TestRangesThatAreNone(t *testing.T) {
	good := `{"path": "x.arrow", "range": [5, 3], "label": 0}`
	for says, rows := range map[string][]string{
		"row 1: 3 bytes from 14 on are not in x.arrow, which has 16": {good, `{"path": "x.arrow", "range": [14, 3], "label": 0}`},
		"row 0: 3 bytes from -1 on are not in":                       {`{"path": "x.arrow", "range": [-1, 3], "label": 0}`},
		"row 0: 0 bytes from 1 on are not in":                        {`{"path": "x.arrow", "range": [1, 0], "label": 0}`},
		"row 0: 9223372036854775807 bytes from 9 on":                 {`{"path": "x.arrow", "range": [9, 9223372036854775807], "label": 0}`},
		`row 1 has no "range", as rows before have`:                  {good, `{"path": "x.arrow", "label": 0}`},
		`row 1 has "range", and rows before have none`:               {`{"path": "x.arrow", "label": 0}`, good},
		"row 1: there is no file z.arrow":                            {good, `{"path": "z.arrow", "range": [1, 1], "label": 0}`},
		"row 1: deep is not a regular file":                          {good, `{"path": "deep", "range": [1, 1], "label": 0}`},
		`row 1: "../x.arrow" leads out of`:                           {good, `{"path": "../x.arrow", "range": [1, 1], "label": 0}`},
		`row 1 has no "txt": feedwater.Table(`:                       {`{"path": "x.arrow", "range": [5, 3], "txt": "a"}`, `{"path": "x.arrow", "range": [1, 1]}`},
		`row 1: "range" is not two whole numbers`:                    {good, `{"path": "x.arrow", "range": [0.5, 5], "label": 0}`},
		`row 0: "range" is not two whole numbers`:                    {`{"path": "x.arrow", "range": [0, 5, 7], "label": 0}`},
		`the table: row 0: "range" is not two`:                       {`{"path": "x.arrow", "range": [null, 5], "label": 0}`},
		`row 1: "range" is not`:                                      {`{"path": "x.arrow", "label": 0}`, `{"path": "deep/y.arrow", "range": "[0, 4]", "label": 0}`},
		`row 1: "range" is`:                                          {good, `{"path": "x.arrow", "range": null, "label": 0}`},
		`: row 0: "range" is not two whole`:                          {`{"path": "x.arrow", "range": [9223372036854775808, 1], "label": 0}`},
		`: row 0: "range" is not two`:                                {`{"path": "x.arrow", "range": ["0", "4"], "label": 0}`},
		"row 0: -3 bytes from 5 on":                                  {`{"path": "x.arrow", "range": [5, -3], "label": 0}`},
		"row 1: a label is missing":                                  {good, `{"path": "x.arrow", "range": [1, 1]}`},
	} {
		root, table := inFiles(t, rows...)
		o := settled(t)
		o.Table = table
		if strings.Contains(says, "txt") {
			o.Values = "txt"
		}
		if _, err := Open(t.Context(), root, o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v\nwant %s", err, says)
		}
	}
}

// TestValuesOfRanges: further members of rows come with their samples.
func TestValuesOfRanges(t *testing.T) {
	root, table := inFiles(t, `{"path": "x.arrow", "range": [9, 2], "txt": "one"}`, `{"path": "deep/y.arrow", "range": [0, 4], "txt": ""}`)
	o := settled(t)
	o.Table, o.Values = table, "txt"
	for _, place := range []string{root, buckettest.OfFolder(t, root).Place("p")} {
		s := opened(t, place, o)
		if s.ValuesInFiles() || !s.Unlabelled() || len(s.Values()) != 1 || s.Values()[0].Most != 3 {
			t.Errorf("%+v", s.Values())
		}
		for i, want := range []string{"one", ""} {
			sample, err := s.At(i, nil)
			treetest.Must(t, err)
			if got := s.ReadValue(&sample, 0, nil); string(got) != want {
				t.Errorf("sample %d of %s: %q", i, place, got)
			}
		}
	}
}
