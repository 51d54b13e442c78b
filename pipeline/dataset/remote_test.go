package dataset

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/readcache"
	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// remoteTree is class folders whose keys have another order than their folders, folders in folders, and other files.
func remoteTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{
		"a/1.jpg", "a/2.jpg", "a/deep/3.jpg", "a/deep-er/4.jpg", "a-b/1.jpg", "a-b/notes.txt", "é/x.png", "z z/+&=%20.jpg", "README.md",
	} {
		treetest.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		treetest.Must(t, os.WriteFile(filepath.Join(root, name), []byte("picture "+name), 0o600))
	}
	return root
}

// tellAll is all that a snapshot says and reads.
func tellAll(t *testing.T, s *Snapshot) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintln(&b, s.Classes(), s.Fingerprint())
	for i := range s.Len() {
		sample, err := s.At(i, nil)
		treetest.Must(t, err)
		data, err := s.Read(t.Context(), i, nil)
		treetest.Must(t, err)
		fmt.Fprintln(&b, string(sample.Key), sample.Label, sample.Size, string(data))
	}
	return b.String()
}

func opened(t *testing.T, place string, o Options) *Snapshot {
	t.Helper()
	s, err := Open(t.Context(), place, o)
	treetest.Must(t, err)
	t.Cleanup(func() { treetest.Must(t, s.Close()) })
	return s
}

// TestBucketIsTheFolder: class folders in a bucket have the samples, the order, the labels and the fingerprint of the
// same folders on a disk, with pages of any length.
func TestBucketIsTheFolder(t *testing.T) {
	root := remoteTree(t)
	s := buckettest.OfFolder(t, root)
	s.Put("p/a/", nil) // as consoles mark folders
	want := tellAll(t, opened(t, root, options(t)))
	for _, keys := range []int{1, 2, 1000} {
		s.PageKeys = keys
		if got := tellAll(t, opened(t, s.Place("p"), options(t))); got != want {
			t.Errorf("pages of %d: %s\nwant %s", keys, got, want)
		}
	}
}

// TestPartsOnServers: lists and tar files, in buckets and on web servers.
func TestPartsOnServers(t *testing.T) {
	root := remoteTree(t)
	treetest.Must(t, os.WriteFile(root+"/train.csv", []byte("path,label\na/2.jpg,cat\nz z/+&=%20.jpg,dog\n"), 0o600))
	for n := range 3 {
		var file bytes.Buffer
		w := tar.NewWriter(&file)
		for i := range 5 {
			for name, data := range map[string]string{"jpg": fmt.Sprintf("picture %d of %d", i, n), "cls": fmt.Sprint(i)} {
				treetest.Must(t, w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%d.%s", i, name), Size: int64(len(data)), Mode: 0o600}))
				_, err := w.Write([]byte(data))
				treetest.Must(t, err)
			}
		}
		treetest.Must(t, w.Close())
		treetest.Must(t, os.WriteFile(fmt.Sprintf("%s/s-%03d.tar", root, n), file.Bytes(), 0o600))
	}
	s := buckettest.OfFolder(t, root)
	for _, part := range []string{"train.csv", "s-{000..002}.tar", "s-*.tar", "s-00?.tar", "s-001.tar"} {
		want := tellAll(t, opened(t, filepath.Join(root, part), options(t)))
		for kind, base := range map[string]string{"s3": s.Place("p"), "http": s.Plain("p")} {
			if strings.ContainsAny(part, "*?") && kind == "http" {
				_, err := Open(t.Context(), Join(base, part), options(t))
				if err == nil || !strings.Contains(err.Error(), "{000..146}") {
					t.Errorf("%s: %v", part, err)
				}
				continue
			}
			o := options(t)
			if got := tellAll(t, opened(t, Join(base, part), o)); got != want {
				t.Errorf("%s %s: %s\nwant %s", kind, part, got, want)
			}
			if again := opened(t, Join(base, part), o); part == "s-001.tar" && !again.Cached() {
				t.Errorf("%s %s was scanned again, although no shard changed", kind, part)
			}
		}
	}
	o := options(t)
	opened(t, s.Place("p/s-001.tar"), o)
	s.Put("p/s-001.tar", bytes.Repeat([]byte{0}, 1024))
	if _, err := Open(t.Context(), s.Place("p/s-001.tar"), o); !errors.Is(err, ErrLayout) {
		t.Errorf("a shard that was emptied: %v, want a scan that finds nothing", err)
	}
}

// TestReplacedInBucket: an object that was replaced by one of the same size is an error of the sample, and the next
// Open lists it anew.
func TestReplacedInBucket(t *testing.T) {
	root := remoteTree(t)
	s := buckettest.OfFolder(t, root)
	o := options(t)
	data := opened(t, s.Place("p"), o)
	was, err := os.ReadFile(root + "/a/1.jpg")
	treetest.Must(t, err)
	s.Put("p/a/1.jpg", bytes.Repeat([]byte{'x'}, len(was)))
	var changed *ChangedError
	if _, err := data.Read(t.Context(), 0, nil); !errors.As(err, &changed) || changed.Path != "a/1.jpg" {
		t.Errorf("%v, want a ChangedError of a/1.jpg", err)
	}
	later := opened(t, s.Place("p"), o)
	if data.Same(later) || later.Fingerprint() != data.Fingerprint() {
		t.Errorf("the same: %v; fingerprints %s and %s", data.Same(later), data.Fingerprint(), later.Fingerprint())
	}
	if got, err := later.Read(t.Context(), 0, nil); err != nil || got[0] != 'x' {
		t.Errorf("%q, %v", got, err)
	}
	if third := opened(t, s.Place("p"), o); !later.Same(third) {
		t.Error("nothing changed, and the lists differ")
	}
}

// TestEmptyPlaces say what was looked for, and where.
func TestEmptyPlaces(t *testing.T) {
	s := buckettest.OfFolder(t, remoteTree(t))
	for place, want := range map[string]string{
		s.Place("none"): "nothing lies below it on the server", s.Place("p/none.csv"): "not exist", s.Place("p/none-{0..1}.tar"): "not exist", s.Place("p/*.tar"): "nothing is called",
		strings.Replace(s.Place("p"), "data", "other", 1): "no bucket other", s.Plain("p"): "{000..146}",
	} {
		if _, err := Open(t.Context(), place, options(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", place, err, want)
		}
	}
}

// TestListsThroughTrouble: a tenth of the answers is 503, and the list is the same.
func TestListsThroughTrouble(t *testing.T) {
	root := remoteTree(t)
	s := buckettest.OfFolder(t, root)
	s.PageKeys = 1
	want := tellAll(t, opened(t, root, options(t)))
	var asked atomic.Int64
	s.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
		if asked.Add(1)%10 != 0 {
			return false
		}
		buckettest.Refuse(w, http.StatusServiceUnavailable, "SlowDown")
		return true
	})
	if got := tellAll(t, opened(t, s.Place("p"), options(t))); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestTroubleOfPlaces: trouble is told of where it is, and of folders above it. Files in a folder have that of this folder.
func TestTroubleOfPlaces(t *testing.T) {
	s := buckettest.OfFolder(t, remoteTree(t))
	s.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
		buckettest.Refuse(w, http.StatusForbidden, "AccessDenied")
		return true
	})
	if _, err := Open(t.Context(), s.Place("p/q/x.tar"), options(t)); !errors.Is(err, fs.ErrPermission) {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"p/q/x.tar": true, "p/q/y-{0..1}.tar": true, "p/q": true, "p": true, "p/q/r": false, "p/x.tar": false, "p/x-*.tar": false, "q": false,
	} {
		if trouble := Trouble(s.Place(name), 0); (trouble != nil) != want {
			t.Errorf("the trouble of %s is %v", name, trouble)
		}
	}
}

// TestPlacesOfServers: how places are joined and cut.
func TestPlacesOfServers(t *testing.T) {
	for _, test := range [][3]string{
		{"s3://b", "x/y", "s3://b/x/y"}, {"s3://b/p/?region=r", "", "s3://b/p?region=r"},
		{"s3://b/p?endpoint=http://h:1&region=r", "x-?.tar", "s3://b/p/x-?.tar?endpoint=http://h:1&region=r"}, {"https://h/p", "a", "https://h/p/a"},
	} {
		if got := Join(test[0], test[1]); got != test[2] {
			t.Errorf("%s joined with %s: %s, want %s", test[0], test[1], got, test[2])
		}
		if !Holds(test[0], test[2]) {
			t.Errorf("%s does not hold %s", test[0], test[2])
		}
	}
	for _, test := range [][2]string{
		{"s3://b/p", "s3://b/pp"}, {"s3://b/p", "s3://c/p"}, {"s3://b/p?region=r", "s3://b/p"}, {"/b", "s3://b"}, {"s3://b", "/b"},
	} {
		if Holds(test[0], test[1]) {
			t.Errorf("%s holds %s", test[0], test[1])
		}
	}
	for place, want := range map[string]string{
		"s3://b/p/x-?.tar?region=r": "s3://b/p?region=r", "s3://b/x.tar": "s3://b", "s3://b/p/{a,b}/x.tar": "s3://b/p", "s3://b": "s3://b",
		"https://h/p/train.csv": "https://h/p", "s3://b/p?region=r": "s3://b/p?region=r",
	} {
		if got := FolderOf(place); got != want {
			t.Errorf("%s lies in %s, want %s", place, got, want)
		}
	}
}

// TestTableOfABucket: a table lists what lies in a bucket as it does what lies in a folder, and what changes there is never taken for what it listed.
func TestTableOfABucket(t *testing.T) {
	root, table := remoteTree(t), filepath.Join(t.TempDir(), "1.jsonl")
	treetest.Must(t, os.WriteFile(table, []byte(`{"class_name": "x"}`+"\n"+`{"path": "z z/+&=%20.jpg", "label": 0}`+"\n"+`{"path": "a/1.jpg", "label": 0}`+"\n"), 0o600))
	s := buckettest.OfFolder(t, root)
	o := options(t)
	o.Table = table
	want := tellAll(t, opened(t, root, o))
	there := opened(t, s.Place("p"), o)
	if got := tellAll(t, there); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	s.Put("p/a/1.jpg", []byte("another a/1.jpg"))
	if _, err := there.Read(t.Context(), 1, nil); !errors.As(err, new(*ChangedError)) {
		t.Errorf("%v, want a ChangedError", err)
	}
	if _, err := Open(t.Context(), filepath.Join(root, "x.tar"), o); !errors.Is(err, ErrLayout) {
		t.Errorf("below a tar file: %v", err)
	}
}

// TestListOfServerIsLookedAtAgain: what a list or a table names on a server is looked at when it is opened, whatever list and blocks are kept. So an object
// that was replaced by one of the same size is read as it is now, and one that was removed is an error.
func TestListOfServerIsLookedAtAgain(t *testing.T) {
	table := t.TempDir() + "/table"
	treetest.Must(t, os.WriteFile(table, []byte(`{"path":"a/1.jpg","label":0}`+"\n"+`{"path":"a/2.jpg","label":1}`+"\n"), 0o600))
	for name, c := range map[string]struct{ part, table string }{"a list": {"l.csv", ""}, "a table": {"", table}} {
		t.Run(name, func(t *testing.T) {
			s := buckettest.OfFolder(t, t.TempDir())
			s.Put("p/l.csv", []byte("path,label\na/1.jpg,0\na/2.jpg,1\n"))
			s.Put("p/a/1.jpg", []byte("one"))
			s.Put("p/a/2.jpg", []byte("two"))
			for _, base := range []string{s.Place("p"), s.Plain("p")} {
				s.Put("p/a/1.jpg", []byte("one"))
				o := options(t)
				o.Table = c.table
				blocks, err := readcache.Open(t.TempDir(), 1<<20, nil)
				treetest.Must(t, err)
				defer func() { treetest.Must(t, blocks.Close()) }()
				o.ReadCache = blocks
				read := func() string {
					data := opened(t, Join(base, c.part), o)
					got, err := data.Read(t.Context(), 0, nil)
					treetest.Must(t, err)
					return string(got)
				}
				if got := read(); got != "one" {
					t.Fatalf("%q", got)
				}
				s.Put("p/a/1.jpg", []byte("ONE"))
				if got := read(); got != "ONE" {
					t.Errorf("%s: %q, and the bucket has ONE", base, got)
				}
			}
			s.Delete("p/a/2.jpg")
			o := options(t)
			o.Table = c.table
			if _, err := Open(t.Context(), Join(s.Place("p"), c.part), o); !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), "there is no file a/2.jpg") {
				t.Errorf("a file that was removed: %v", err)
			}
		})
	}
}

// TestFilesOfAListAreListed: what a list names in a bucket is asked about by listing its folders, a page for a thousand files;
// one by one are asked about those of a folder that has many others, and of one that the list names one file of.
func TestFilesOfAListAreListed(t *testing.T) {
	s := buckettest.OfFolder(t, t.TempDir())
	var list strings.Builder
	list.WriteString("path,label\n")
	put := func(key string, named bool) {
		s.Put("p/"+key, []byte(key))
		if named {
			list.WriteString(key + ",0\n")
		}
	}
	for i := range 1500 {
		put(fmt.Sprintf("all/%04d.jpg", i), true)
	}
	for i := range 3000 {
		put(fmt.Sprintf("few/%04d.jpg", i), i == 1 || i == 2999)
	}
	for i := range 10 {
		put(fmt.Sprintf("one/%04d.jpg", i), i == 3)
	}
	s.Put("p/l.csv", []byte(list.String()))
	data := opened(t, Join(s.Place("p"), "l.csv"), options(t))
	if data.Len() != 1503 {
		t.Fatalf("%d samples", data.Len())
	}
	for _, i := range []int{0, 1499, 1500, 1501, 1502} {
		sample, err := data.At(i, nil)
		treetest.Must(t, err)
		got, err := data.Read(t.Context(), i, nil)
		treetest.Must(t, err)
		if string(got) != string(sample.Key) {
			t.Errorf("sample %d, %s, has %q", i, sample.Key, got)
		}
	}
	lists, asked := 0, map[string]bool{}
	for _, request := range s.Requests() {
		if request == "GET /"+buckettest.Bucket+"/" {
			lists++
		} else if name, head := strings.CutPrefix(request, "HEAD /"+buckettest.Bucket+"/p/"); head && strings.HasSuffix(name, ".jpg") {
			asked[name] = true
		}
	}
	if lists < 3 || lists > 9 || len(asked) != 2 || !asked["few/2999.jpg"] || !asked["one/0003.jpg"] { // a list that takes long is asked for twice
		t.Errorf("%d lists, and asked about %v", lists, asked)
	}
}
