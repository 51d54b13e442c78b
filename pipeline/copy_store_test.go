package pipeline

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/imageindex"
	"github.com/feedwater-io/feedwater/pipeline/revision"
)

func openedCopies(t *testing.T, x IndexOptions) *copyStore {
	t.Helper()
	c, err := x.openCopies(revision.Build())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// keep keeps the copy of a file.
func (c *copyStore) keep(file, data []byte) bool {
	return c.Put(0, imageindex.Digest(file), c.sealCopy(bytes.Clone(data), file))
}

// A copy is found for the bytes that it was made of, and not for others with their digest, whoever made them.
func TestCopyOfAnotherFile(t *testing.T) {
	x := IndexOptions{Dir: t.TempDir(), CopyBytes: 1 << 30}.withDefaults()
	c := openedCopies(t, x)
	file, data := bytes.Repeat([]byte("file"), 100), []byte("its copy")
	digest := imageindex.Digest(file)
	if _, wanted := c.Find(file, digest, nil); !wanted || !c.keep(file, data) {
		t.Fatal("no copy is wanted")
	}
	for range 2 {
		if got, wanted := c.Find(file, digest, nil); string(got) != string(data) || wanted {
			t.Errorf("found %q, another one is wanted: %t", got, wanted)
		}
		for _, other := range [][]byte{file[1:], append(bytes.Clone(file[:399]), 'f'), nil} {
			if got, wanted := c.Find(other, digest, nil); len(got) != 0 || !wanted {
				t.Errorf("found %q for a file of equal digest", got)
			}
		}
		c.Close()
		c = openedCopies(t, x)
	}
	if n := testing.AllocsPerRun(20, func() {
		if got, _ := c.Find(file, digest, data); len(got) == 0 {
			t.Error("not found")
		}
		data = data[:0]
	}); n > 1 { // data grows once
		t.Errorf("%v allocations", n)
	}
}

// A folder has one key, whoever makes it; without it, or with another one, its copies are none and are made anew.
func TestKeyOfCopies(t *testing.T) {
	x := IndexOptions{Dir: t.TempDir(), CopyBytes: 1 << 30}.withDefaults()
	var opening sync.WaitGroup
	for range 8 {
		opening.Go(func() {
			c, err := x.openCopies(revision.Build())
			if err != nil {
				t.Error(err)
				return
			}
			c.keep([]byte("file"), []byte("copy"))
			c.Close()
		})
	}
	opening.Wait()
	found := func(x IndexOptions) bool {
		c := openedCopies(t, x)
		got, _ := c.Find([]byte("file"), imageindex.Digest([]byte("file")), nil)
		return string(got) == "copy"
	}
	noShare := IndexOptions{Dir: x.Dir}.withDefaults()
	path := filepath.Join(x.Dir, copiesFolder, keyName)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || !found(x) || !found(noShare) {
		t.Fatalf("%v, %v", info, err)
	}
	left, err := filepath.Glob(path + "-*")
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for what, spoil := range map[string]func() error{
		"no key":    func() error { return os.Remove(path) },
		"a cut one": func() error { return os.Truncate(path, 3) },
		"another":   func() error { return os.WriteFile(path, randomKey(), 0o600) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if found(noShare) || found(x) {
			t.Errorf("%s: found", what)
		}
		c := openedCopies(t, x)
		c.keep([]byte("file"), []byte("copy"))
		c.Close()
		if !found(x) || !found(noShare) {
			t.Errorf("%s: not made anew", what)
		}
	}
}

// Who opened the folder before it had a key finds copies that came to be since.
func TestKeyThatComesLater(t *testing.T) {
	x := IndexOptions{Dir: t.TempDir()}.withDefaults()
	early := openedCopies(t, x)
	if early.sealCopy(nil, []byte("file")) != nil {
		t.Error("a seal without a key")
	}
	x.CopyBytes = 1 << 30
	late := openedCopies(t, x)
	if early.sealCopy(nil, []byte("file")) == nil || late.sealCopy(nil, []byte("file")) == nil {
		t.Error("no key is found")
	}
}
