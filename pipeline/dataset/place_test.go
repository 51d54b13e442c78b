package dataset

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// TestListFile: a list is kept, read again, found to have changed, and told apart from a folder of such a name.
func TestListFile(t *testing.T) {
	root, o := treetest.Grow(t, t.TempDir(), "a/1.jpg", "a/22.jpg"), options(t)
	treetest.Must(t, os.WriteFile(root+"/l.csv", []byte("a/22.jpg,5\na/1.jpg,-6\n"), 0o600))
	s := open(t, root+"/l.csv", o)
	got := lines(t, s)
	if len(got) != 2 || got[0].key != "a/22.jpg" || got[0].label != 5 || got[1].label != -6 || len(s.Classes()) != 0 {
		t.Errorf("%+v", got)
	}
	for i, want := range []int{len("a/22.jpg"), len("a/1.jpg")} {
		if b, err := s.Read(t.Context(), i, nil); err != nil || len(b) != want {
			t.Errorf("sample %d: %d bytes, %v", i, len(b), err)
		}
	}
	if again := open(t, root+"/l.csv", o); !again.Cached() || again.Fingerprint() != s.Fingerprint() {
		t.Error("the list is not found again")
	}
	treetest.Must(t, os.WriteFile(root+"/l.csv", []byte("a/1.jpg,5\n"), 0o600))
	if again := open(t, root+"/l.csv", o); again.Cached() || again.Len() != 1 {
		t.Error("the list of before is used")
	}
	treetest.Must(t, os.Remove(root+"/l.csv"))
	treetest.Grow(t, root, "l.csv/class/x.jpg")
	if folder := open(t, root+"/l.csv", o); folder.Len() != 1 || folder.Classes()[0].Name != "class" {
		t.Error("a folder that is called like a list is not read as a folder")
	}
}

// TestShardChanges: a picture of a shard that was written is not read, and says which shard it was.
func TestShardChanges(t *testing.T) {
	root, o := t.TempDir(), options(t)
	shard := append([]byte("a.jpg"), make([]byte, 1024+1024)...)
	copy(shard[100:], "0000600\x00")
	copy(shard[124:], "00000000003\x00")
	copy(shard[148:], "        ")
	shard[156] = '0'
	sum := 0
	for _, c := range shard[:512] {
		sum += int(c)
	}
	copy(shard[148:], []byte{'0' + byte(sum>>15&7), '0' + byte(sum>>12&7), '0' + byte(sum>>9&7), '0' + byte(sum>>6&7), '0' + byte(sum>>3&7), '0' + byte(sum&7), 0, ' '})
	copy(shard[512:], "abc")
	shard = shard[:2048]
	treetest.Must(t, os.WriteFile(root+"/x.tar", shard, 0o600))
	s := open(t, root+"/*.tar", o)
	if b, err := s.Read(t.Context(), 0, nil); err != nil || string(b) != "abc" || !s.Unlabelled() {
		t.Errorf("%q, %v, unlabelled %v", b, err, s.Unlabelled())
	}
	if !open(t, root+"/*.tar", o).Cached() {
		t.Error("the list is not found again")
	}
	treetest.Must(t, os.Chtimes(root+"/x.tar", time.Time{}, time.Unix(1, 0)))
	_, err := s.Read(t.Context(), 0, nil)
	var changed *ChangedError
	if !errors.As(err, &changed) || changed.Path != "x.tar/a.jpg" || !strings.HasPrefix(changed.What, "lies in x.tar, which was written at") {
		t.Errorf("%v, want a ChangedError", err)
	}
	if again := open(t, root+"/*.tar", o); again.Cached() {
		t.Error("the list of before is used")
	}
}

func TestCut(t *testing.T) {
	for place, want := range map[string]string{
		"/a/b": "/a/b|", "/a/l.csv": "/a|l.csv", "/a/x{1..2}/y.tar": "/a|x{1..2}/y.tar", "/a/*.tar": "/a|*.tar", "/x.tar": "/|x.tar",
		"l.csv": ".|l.csv", "*.tar": ".|*.tar", "a": "a|",
	} {
		if folder, part := cut(place); folder+"|"+part != want {
			t.Errorf("%s: %s|%s, want %s", place, folder, part, want)
		}
	}
}

// TestNamesLikePatterns: folders and files that are called as patterns are found by their names, and by these with signs in brackets.
func TestNamesLikePatterns(t *testing.T) {
	root := treetest.Grow(t, t.TempDir(), "run[1]/a/1.jpg", "run1/a/2.jpg")
	shard := shardOf(t, "x.jpg", "X", "x.cls", "1")
	for _, name := range []string{"run[1]/s{1}.tar", "run[1]/s-0.tar", "run[1]/shard", "run1/s1.tar"} {
		treetest.Must(t, os.WriteFile(root+"/"+name, shard, 0o600))
	}
	treetest.Must(t, os.WriteFile(root+"/run[1]/l{*}.csv", []byte("a/1.jpg,5\n"), 0o600))
	for place, want := range map[string]string{
		"run[1]/s{1}.tar": "s{1}.tar/x.jpg", "run[1]/s[{]1}.tar": "s{1}.tar/x.jpg", "run[1]/s-{0..0}.tar": "s-0.tar/x.jpg", "run[1]/s-*.tar": "s-0.tar/x.jpg",
		"run[[]1]/s-0.tar": "run[1]/s-0.tar/x.jpg", "run[[]1]/s[{]1}.tar": "run[1]/s{1}.tar/x.jpg", "run[1]/shard": "shard/x.jpg",
		"run[1]/l{*}.csv": "a/1.jpg", "run[1]/l[{][*]}.csv": "a/1.jpg", "run[1-9]/s1.tar": "run1/s1.tar/x.jpg",
	} {
		o := settled(t)
		if place == "run[1]/shard" {
			o.Layout = "tar"
		}
		resolved, err := Resolve(root + "/" + place)
		treetest.Must(t, err)
		for _, name := range []string{root + "/" + place, resolved} {
			if s := opened(t, name, o); s.Len() != 1 || lines(t, s)[0].key != want {
				t.Errorf("%s has %v, want %s", name, lines(t, s), want)
			}
		}
	}
}
