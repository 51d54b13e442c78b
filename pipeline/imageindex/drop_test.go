package imageindex

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// bytesIn is what the files of a folder take.
func bytesIn(t *testing.T, dir string) (n int64) {
	t.Helper()
	for _, name := range filesIn(t, dir) {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

// Several builders that know nothing of one another write everything. What later files replace goes; the Caches that
// had it go on.
func TestReplacedFilesAreDropped(t *testing.T) {
	dir := t.TempDir()
	var all []*Cache
	for range 4 {
		all = append(all, opened(t, Options{Dir: dir}))
	}
	for i := range samples {
		for k, s := range all {
			s.Put(i, digestOf(i), wantOf(i))
			if i%(k+2) == 0 || i == samples-1 { // no two have the same cuts
				s.flushPending()
			}
		}
	}
	before := bytesIn(t, dir)
	var dropping sync.WaitGroup
	for _, s := range all { // at once, and each loads what the others have written in an order of its own
		dropping.Go(s.lookForFiles)
	}
	dropping.Wait()
	for i, s := range all {
		if n := found(t, s); n != samples {
			t.Errorf("store %d, open: %d found", i, n)
		}
		s.Close()
	}
	last := opened(t, Options{Dir: dir})
	if n := found(t, last); n != samples {
		t.Errorf("%d found", n)
	}
	if after := bytesIn(t, dir); after > before*6/10 || after != last.DiskBytes() {
		t.Errorf("%d bytes on disk of %d, %d told", after, before, last.DiskBytes())
	}
}

// A file that has one record that no later one has stays, and so do those of other data sets.
func TestNeededFilesStay(t *testing.T) {
	dir := t.TempDir()
	other, err := Open("other", samples, Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	fill(other)
	other.Close()
	first := opened(t, Options{Dir: dir})
	second := opened(t, Options{Dir: dir})
	fill(first)
	first.flushPending()
	for i := range samples - 1 {
		second.Put(i, digestOf(i), wantOf(i))
	}
	second.flushPending()
	for _, s := range []*Cache{first, second} {
		s.lookForFiles()
		if n := len(filesIn(t, dir)); n != 3 || found(t, s) != samples {
			t.Fatalf("%d files", n)
		}
	}
	second.Put(samples-1, digestOf(samples-1), wantOf(samples-1))
	second.Close()
	if n := len(filesIn(t, dir)); n != 3 {
		t.Errorf("%d files: of the data set there should be the second store's two", n)
	}
	if n := found(t, first); n != samples {
		t.Errorf("the first store has lost records: %d", n)
	}
}

// Of two records about a sample the one in the file with the later name counts, in whichever order they are found.
func TestLaterNameCounts(t *testing.T) {
	dir := t.TempDir()
	old, young := opened(t, Options{Dir: dir}), opened(t, Options{Dir: dir})
	old.Put(0, digestOf(0), []byte("old"))
	old.Put(1, digestOf(1), []byte("old"))
	old.flushPending()
	young.Put(0, digestOf(0), []byte("young"))
	young.flushPending()
	young.lookForFiles()
	if got, _ := young.Find(0, digestOf(0), nil); !bytes.Equal(got, []byte("young")) {
		t.Errorf("%q", got)
	}
}

// What is no file under an index's name is left alone: a FIFO would wait for a writer, and with it the node.
func TestOtherThingsAreSkipped(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, Options{Dir: dir})
	fifo := filepath.Join(dir, s.filePrefix()+"0000000000000001-1"+ending)
	makeFIFO(t, fifo)
	if err := os.Mkdir(filepath.Join(dir, s.filePrefix()+"0000000000000002-2"+ending), 0o700); err != nil {
		t.Fatal(err)
	}
	s.lookForFiles()
	if _, err := mapPath(fifo); err == nil {
		t.Error("a FIFO is mapped")
	}
	fill(s)
	s.Close()
	if n := found(t, opened(t, Options{Dir: dir})); n != samples {
		t.Errorf("%d found", n)
	}
}
