package dataset

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// shardOf is a tar file of names and contents.
func shardOf(t testing.TB, members ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for i := 0; i < len(members); i += 2 {
		treetest.Must(t, w.WriteHeader(&tar.Header{Name: members[i], Size: int64(len(members[i+1])), Mode: 0o600}))
		_, err := w.Write([]byte(members[i+1]))
		treetest.Must(t, err)
	}
	treetest.Must(t, w.Close())
	return out.Bytes()
}

// TestValuesOfShards: they come with the picture, in one read where they lie close by, from files and from a bucket, into a buffer that was used.
func TestValuesOfShards(t *testing.T) {
	root := t.TempDir()
	far := strings.Repeat("f", 2*maxGap)
	treetest.Must(t, os.WriteFile(root+"/x.tar", shardOf(t,
		"a.txt", "before", "a.jpg", "picture a", "a.json", "{}",
		"b.jpg", "picture b", "b.big", far, "b.json", "[1]", "b.txt", "",
		"c.json", "", "c.txt", "c's", "c.jpg", "picture c"), 0o600))
	server := buckettest.OfFolder(t, root)
	place := "s3://" + buckettest.Bucket + "/p/x.tar?endpoint=" + server.URL
	o := options(t)
	o.Values = "txt,json"
	want := [][3]string{{"picture a", "before", "{}"}, {"picture b", "", "[1]"}, {"picture c", "c's", ""}}
	here := opened(t, root+"/x.tar", o)
	for _, s := range []*Snapshot{here, opened(t, place, o)} {
		if !s.ValuesInFiles() || len(s.Values()) != 2 || s.Fingerprint() != here.Fingerprint() {
			t.Errorf("%+v, %s", s.Values(), s.Fingerprint())
		}
		buf := bytes.Repeat([]byte("used"), 100)
		for i, w := range want {
			sample, err := s.At(i, nil)
			treetest.Must(t, err)
			before := len(server.Requests())
			buf, err = s.Read(t.Context(), i, buf)
			treetest.Must(t, err)
			got := [3]string{string(buf), string(s.ReadValue(&sample, 0, buf)), string(s.ReadValue(&sample, 1, buf))}
			if got != w {
				t.Errorf("sample %d of %s: %q, want %q", i, s.Path(), got, w)
			}
			if n := len(server.Requests()) - before; s != here && n != []int{1, 2, 1}[i] {
				t.Errorf("sample %d took %d questions", i, n)
			}
		}
	}
	if again := opened(t, root+"/x.tar", o); !again.Cached() {
		t.Error("the list with values is not found again")
	}
	o.Values = ""
	if plain := opened(t, root+"/x.tar", o); plain.Cached() || plain.Fingerprint() == here.Fingerprint() {
		t.Error("a list with values stands for one without")
	}
}

// TestChoicesOfFolders: class folders have neither other labels nor values.
func TestChoicesOfFolders(t *testing.T) {
	root := treetest.Grow(t, t.TempDir(), "a/1.jpg")
	for says, change := range map[string]func(*Options){
		`class folders have no field "txt"`: func(o *Options) { o.Values = "txt,json" },
		`class folders have theirs`:         func(o *Options) { o.Label = "cls" },
	} {
		o := options(t)
		change(&o)
		if _, err := Open(t.Context(), root, o); !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
