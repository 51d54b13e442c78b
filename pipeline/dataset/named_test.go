package dataset

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// settled are options with a cache that has nothing, later than all changes of files.
func settled(t *testing.T) Options {
	o := fresh(t)
	o.now = later
	return o
}

// misnamed is a folder of data whose names tell nothing, or something else.
func misnamed(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	treetest.Grow(t, root, "classes/a/1.jpg", "classes/b/2.jpg", "parquet/a/1.jpg")
	treetest.Must(t, os.WriteFile(root+"/classes/index.json", []byte(`{"version": 2, "shards": [{"format": "mds"}]}`), 0o600))
	treetest.Must(t, os.WriteFile(root+"/0001", shardOf(t, "a.jpg", "A", "a.cls", "1"), 0o600))
	treetest.Must(t, os.WriteFile(root+"/0002", shardOf(t, "b.jpg", "B", "b.cls", "0"), 0o600))
	treetest.Must(t, os.WriteFile(root+"/train.txt", []byte("classes/a/1.jpg\t3\n"), 0o600))
	treetest.Must(t, os.WriteFile(root+"/train.csv.bak", []byte(`{"path": "classes/b/2.jpg", "label": 4}`), 0o600))
	treetest.Must(t, os.Mkdir(root+"/x.tar", 0o700))
	treetest.Must(t, os.WriteFile(root+"/x.tar/1.tar", shardOf(t, "c.jpg", "C", "c.cls", "2"), 0o600))
	return root
}

// TestNamedLayouts: where the name of a place tells nothing, or what lies there tells something else, the layout that is named counts, here and on
// servers.
func TestNamedLayouts(t *testing.T) {
	root := misnamed(t)
	server := buckettest.OfFolder(t, root)
	for _, c := range []struct{ part, layout, want string }{
		{"classes", folderLayout, "a/1.jpg 0, b/2.jpg 1"},
		{"0001", tarLayout, "0001/a.jpg 1"},
		{"{0002,0001}", tarLayout, "0002/b.jpg 0, 0001/a.jpg 1"},
		{"train.txt", "tsv", "classes/a/1.jpg 3"},
		{"train.csv.bak", "jsonl", "classes/b/2.jpg 4"},
		{"x.tar", tarLayout, "1.tar/c.jpg 2"},
	} {
		for kind, place := range map[string]string{"disk": root + "/" + c.part, "s3": server.Place("p/" + c.part), "http": server.Plain("p/" + c.part)} {
			if c.layout == folderLayout && kind == "http" || c.part == "x.tar" && kind != "disk" { // there it is a file's name
				continue
			}
			o := settled(t)
			o.Layout = c.layout
			var got []string
			s := opened(t, place, o)
			for i := range s.Len() {
				sample, err := s.At(i, nil)
				treetest.Must(t, err)
				got = append(got, string(sample.Key)+" "+string(rune('0'+sample.Label)))
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("%s as %s has %q, want %s", place, c.layout, got, c.want)
			}
			if again := opened(t, place, o); kind == "disk" && !again.Cached() {
				t.Errorf("%s as %s is not found again", place, c.layout)
			}
		}
	}
	kept := settled(t)
	kept.Layout = folderLayout
	opened(t, root+"/classes", kept)
	kept.Layout = ""
	if _, err := Open(t.Context(), root+"/classes", kept); !errors.Is(err, ErrLayout) {
		t.Errorf("the list that was kept of another layout is taken: %v", err)
	}
	o := settled(t)
	o.Layout = folderLayout
	ship(t, root+"/classes", o)
	if s := opened(t, root+"/classes", o); !s.Shipped() || s.Len() != 2 {
		t.Errorf("%d samples, the list beside the data is used: %v", s.Len(), s.Shipped())
	}
	if _, err := Open(t.Context(), root+"/classes", settled(t)); !errors.Is(err, ErrLayout) {
		t.Errorf("its index.json is not looked at: %v", err)
	}
}

// TestLayoutsThatAreNone: what cannot be is said.
func TestLayoutsThatAreNone(t *testing.T) {
	root := misnamed(t)
	for _, c := range []struct{ part, layout, table, says string }{
		{"0001", "zip", "", `no layout is called "zip"; there are folder, mds, tar`},
		{"*.tar", folderLayout, "", "is no place for the layout folder, which is that of a folder"},
		{"classes", "csv", "", "is no place for the layout csv, which is that of files"},
		{"classes", tarLayout, "", "*.tar"},
		{"classes", tarLayout, "/dev/null", "a table has no other layout"},
		{"train.txt", tarLayout, "", "train.txt"},
	} {
		o := settled(t)
		o.Layout, o.Table = c.layout, c.table
		if _, err := Open(t.Context(), root+"/"+c.part, o); !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s as %s: %v, want %q", c.part, c.layout, err, c.says)
		}
	}
}
