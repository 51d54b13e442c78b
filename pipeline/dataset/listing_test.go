package dataset

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// TestListing: it is the same as long as the files are, by their sizes and times, whatever was done to their folders; of
// shards as long as they are the same files. Of what tells of no change it is empty.
func TestListing(t *testing.T) {
	for _, c := range []struct{ place, file string }{{"classes", "classes/a/1.jpg"}, {"s-{0..1}.tar", "s-1.tar"}} {
		root := shippable(t)
		place, file, old := filepath.Join(root, c.place), filepath.Join(root, c.file), time.Unix(1e9, 0)
		treetest.Must(t, os.Chtimes(file, old, old))
		content, err := os.ReadFile(file)
		treetest.Must(t, err)
		listing := func() string { return opened(t, place, fresh(t)).Listing() }
		before := listing()
		if before == "" || listing() != before {
			t.Errorf("%s: %q, listed again %q", c.place, before, listing())
		}
		write := func(path string, modified time.Time) {
			treetest.Must(t, os.WriteFile(path, content, 0o600))
			treetest.Must(t, os.Chtimes(path, modified, modified))
		}
		write(file, old.Add(1))
		if listing() == before {
			t.Errorf("%s: the same though a file has another time", c.place)
		}
		write(file+".new", old)
		treetest.Must(t, os.Rename(file+".new", file))
		if same := listing() == before; same != (c.place == "classes") {
			t.Errorf("%s: the same behind another file of the same size and time: %v", c.place, same)
		}
	}
	root, o := shippable(t), fresh(t)
	ship(t, root+"/classes", o)
	if s := opened(t, root+"/classes", o); !s.Shipped() || s.Listing() != "" {
		t.Errorf("of a list beside the data: %q", s.Listing())
	}
}
