package dataset

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// ship writes the list of a place to where whoever opens it looks.
func ship(t *testing.T, place string, o Options) ListFiles {
	t.Helper()
	var list bytes.Buffer
	files, err := WriteList(t.Context(), place, o, &list)
	treetest.Must(t, err)
	treetest.Must(t, PutList(t.Context(), files.Folder, &files, bytes.NewReader(list.Bytes()), int64(list.Len())))
	return files
}

// fresh are options with a cache that has nothing.
func fresh(t *testing.T) Options { return Options{CacheDir: t.TempDir(), Flat: true, Empty: true} }

// shippable is a folder of class folders, of shards and of a list, old enough for their times to be believed.
func shippable(t *testing.T) string {
	t.Helper()
	root := t.TempDir() + "/data"
	treetest.Must(t, os.Mkdir(root, 0o700))
	treetest.Grow(t, root, "classes/a/1.jpg", "classes/a/deep/2.jpg", "classes/b/3.jpg")
	treetest.Must(t, os.WriteFile(root+"/s-0.tar", shardOf(t, "a.jpg", "A", "a.txt", "one", "b.jpg", "BB", "b.txt", "two"), 0o600))
	treetest.Must(t, os.WriteFile(root+"/s-1.tar", shardOf(t, "c.jpg", "C", "c.txt", "three"), 0o600))
	treetest.Must(t, os.WriteFile(root+"/l.csv", []byte("path,label,txt\nclasses/b/3.jpg,5,x\nclasses/a/1.jpg,6,y\n"), 0o600))
	return root
}

// TestShippedLists: whoever opens a place takes the list that lies beside the data, which says what a scan finds, and looks for no sample.
func TestShippedLists(t *testing.T) {
	root := shippable(t)
	server := buckettest.OfFolder(t, root)
	for _, c := range []struct {
		place, where string
		values       string
		asks         int // questions to the server, at most
	}{
		{root + "/classes", root + "/.feedwater", "", 0},
		{root + "/s-*.tar", root + "/.feedwater", "", 0},
		{root + "/s-{0..1}.tar", root + "/.feedwater", "txt", 0},
		{root + "/l.csv", root + "/.feedwater", "txt", 0},
		{server.Place("p/classes"), "p/classes/.feedwater", "", 4},
		{server.Place("p/s-{0..1}.tar"), "p/.feedwater", "txt", 6},
		{server.Place("p/l.csv"), "p/.feedwater", "", 5},
	} {
		o := fresh(t)
		o.Values = c.values
		scanned := opened(t, c.place, o)
		o.CacheDir = t.TempDir()
		if scanned.Shipped() {
			t.Errorf("%s: a list that nobody made was found", c.place)
		}
		files := ship(t, c.place, o)
		if !strings.Contains(files.Folder, c.where) || files.Fingerprint != scanned.Fingerprint() || files.Samples != scanned.Len() {
			t.Errorf("%s: %+v", c.place, files)
		}
		before := len(server.Requests())
		got := opened(t, c.place, o)
		if asked := server.Requests()[before:]; len(asked) > c.asks || !got.Shipped() {
			t.Errorf("%s: shipped %v, with %q", c.place, got.Shipped(), asked)
		}
		if tellAll(t, got) != tellAll(t, scanned) {
			t.Errorf("%s: the list beside the data says\n%s, a scan\n%s", c.place, tellAll(t, got), tellAll(t, scanned))
		}
		if again := opened(t, c.place, o); !again.Cached() || !again.Shipped() {
			t.Errorf("%s: the list is fetched again", c.place)
		}
	}
}

// TestShippedListsThatAreNotTrue: a list that is damaged, of other data, or of data that changed is not used; the data tell.
func TestShippedListsThatAreNotTrue(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, root string, f ListFiles){
		"a shard was written": func(t *testing.T, root string, _ ListFiles) {
			treetest.Must(t, os.Chtimes(root+"/s-1.tar", time.Now(), time.Now()))
		},
		"damaged": func(t *testing.T, _ string, f ListFiles) {
			data, err := os.ReadFile(f.Folder + "/" + f.List)
			treetest.Must(t, err)
			data[20] ^= 1 // in a page
			treetest.Must(t, os.WriteFile(f.Folder+"/"+f.List, data, 0o600))
		},
		"cut":  func(t *testing.T, _ string, f ListFiles) { treetest.Must(t, os.Truncate(f.Folder+"/"+f.List, 100)) },
		"gone": func(t *testing.T, _ string, f ListFiles) { treetest.Must(t, os.Remove(f.Folder+"/"+f.List)) },
		"another": func(t *testing.T, root string, f ListFiles) {
			other := ship(t, root+"/s-0.tar", fresh(t))
			data, err := os.ReadFile(f.Folder + "/" + other.List)
			treetest.Must(t, err)
			treetest.Must(t, os.WriteFile(f.Folder+"/"+f.List, data, 0o600))
		},
		"a pointer of words": func(t *testing.T, _ string, f ListFiles) {
			treetest.Must(t, os.WriteFile(f.Folder+"/"+f.Pointer, []byte("../../etc/passwd"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := shippable(t)
			f := ship(t, root+"/s-*.tar", fresh(t))
			spoil(t, root, f)
			if s := opened(t, root+"/s-*.tar", fresh(t)); s.Shipped() || s.Len() != 3 {
				t.Errorf("%d samples, shipped %v", s.Len(), s.Shipped())
			}
		})
	}
}

// TestShippedListOfABucket: it is the data set until it is made anew or removed; what was replaced is an error that says so.
func TestShippedListOfABucket(t *testing.T) {
	server := buckettest.OfFolder(t, shippable(t))
	place, o := server.Place("p/classes"), fresh(t)
	f := ship(t, place, o)
	server.Put("p/classes/b/4.jpg", []byte("more"))
	server.Put("p/classes/a/1.jpg", []byte("another"))
	s := opened(t, place, o)
	var changed *ChangedError
	if _, err := s.Read(t.Context(), 0, nil); !errors.As(err, &changed) || !strings.Contains(err.Error(), "make it anew by feedwater snapshot") {
		t.Errorf("%v, want a ChangedError that says what to do", err)
	}
	if s.Len() != 3 || !opened(t, place, o).Shipped() {
		t.Errorf("%d samples", s.Len())
	}
	newer := ship(t, place, o)
	if s := opened(t, place, o); s.Len() != 4 || !s.Shipped() || s.Fingerprint() != newer.Fingerprint {
		t.Errorf("%d samples of the newer list, shipped %v", s.Len(), s.Shipped())
	}
	server.Delete("p/classes/.feedwater/" + f.Pointer)
	if s := opened(t, place, o); s.Len() != 4 || s.Shipped() || len(s.Classes()) != 2 {
		t.Errorf("%d samples of %v without a list, shipped %v", s.Len(), s.Classes(), s.Shipped())
	}
	if _, err := WriteList(t.Context(), "s3://"+buckettest.Bucket+"/nothing?endpoint="+server.URL, o, &bytes.Buffer{}); !errors.Is(err, ErrLayout) {
		t.Errorf("%v, want %v", err, ErrLayout)
	}
}
