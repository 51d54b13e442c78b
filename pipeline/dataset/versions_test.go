package dataset

import (
	"os"
	"slices"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// TestVersions: of files there are none. In a bucket they are those of the objects, whoever lists them, and others where one was replaced by another of
// the same size, which the fingerprint does not tell. Each prefix of a bucket lies in one store.
func TestVersions(t *testing.T) {
	root := shippable(t)
	server, other := buckettest.OfFolder(t, root), buckettest.OfFolder(t, root)
	if store, versions := opened(t, root+"/classes", fresh(t)).Versions(); store != "" || versions != "" {
		t.Errorf("a folder: %q, %q", store, versions)
	}
	for part, object := range map[string]string{"classes": "classes/a/1.jpg", "s-{0..1}.tar": "s-1.tar", "l.csv": "classes/b/3.jpg"} {
		for kind, place := range map[string]string{"s3": server.Place("p/" + part), "http": server.Plain("p/" + part)} {
			if kind == "http" && part == "classes" { // which a web server does not list
				continue
			}
			was, err := os.ReadFile(root + "/" + object)
			treetest.Must(t, err)
			before, again := opened(t, place, fresh(t)), opened(t, place, fresh(t))
			store, versions := before.Versions()
			if sameStore, same := again.Versions(); store == "" || len(versions) != 64 || sameStore != store || same != versions {
				t.Errorf("%s: %q %q, listed again %q %q", place, store, versions, sameStore, same)
			}
			changed, at := slices.Clone(was), len(was)/4
			if object == "s-1.tar" {
				at = 512 // in a picture, not in a header
			}
			changed[at] ^= 1
			server.Put("p/"+object, changed)
			after := opened(t, place, fresh(t))
			if _, now := after.Versions(); after.Fingerprint() != before.Fingerprint() || now == versions {
				t.Errorf("%s: an object was replaced, and the fingerprint is another one: %v, the versions the same: %v",
					place, after.Fingerprint() != before.Fingerprint(), now == versions)
			}
			server.Put("p/"+object, was)
		}
	}
	here, _ := opened(t, server.Place("p/classes"), fresh(t)).Versions()
	part, _ := opened(t, server.Place("p/s-0.tar"), fresh(t)).Versions()
	there, _ := opened(t, other.Place("p/classes"), fresh(t)).Versions()
	if here != part || here == there {
		t.Errorf("one bucket is %s and %s, another one %s", here, part, there)
	}
}

// TestShippedListOfReplacedObjects: a list that was made anew for an object which was replaced by one of the same size takes the place of the one before,
// whose fingerprint it has.
func TestShippedListOfReplacedObjects(t *testing.T) {
	server := buckettest.OfFolder(t, shippable(t))
	place, o := server.Place("p/classes"), fresh(t)
	before := ship(t, place, o)
	opened(t, place, o)
	was, err := opened(t, place, o).Read(t.Context(), 0, nil)
	treetest.Must(t, err)
	replaced := append([]byte{}, was...)
	replaced[0] ^= 1
	server.Put("p/classes/a/1.jpg", replaced)
	after := ship(t, place, o)
	if before.List != after.List || before.PointerText == after.PointerText {
		t.Fatalf("lists %s and %s, pointers %q and %q", before.List, after.List, before.PointerText, after.PointerText)
	}
	s := opened(t, place, o)
	if got, err := s.Read(t.Context(), 0, nil); err != nil || string(got) != string(replaced) || !s.Shipped() {
		t.Errorf("%q, %v, want %q of the newer list", got, err, replaced)
	}
}
