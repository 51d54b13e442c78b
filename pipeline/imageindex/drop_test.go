package imageindex

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
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
		all = append(all, open(t, Options{Dir: dir}))
	}
	for i := range samples {
		for k, s := range all {
			s.Put(i, fileOf(i), wantOf(i))
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
	last := open(t, Options{Dir: dir})
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
	first := open(t, Options{Dir: dir})
	second := open(t, Options{Dir: dir})
	fill(first)
	first.flushPending()
	for i := range samples - 1 {
		second.Put(i, fileOf(i), wantOf(i))
	}
	second.flushPending()
	for _, s := range []*Cache{first, second} {
		s.lookForFiles()
		if n := len(filesIn(t, dir)); n != 3 || found(t, s) != samples {
			t.Fatalf("%d files", n)
		}
	}
	second.Put(samples-1, fileOf(samples-1), wantOf(samples-1))
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
	old, young := open(t, Options{Dir: dir}), open(t, Options{Dir: dir})
	old.Put(0, fileOf(0), []byte("old"))
	old.Put(1, fileOf(1), []byte("old"))
	old.flushPending()
	young.Put(0, fileOf(0), []byte("young"))
	young.flushPending()
	young.lookForFiles()
	if got, _ := young.Find(0, fileOf(0), nil); !bytes.Equal(got, []byte("young")) {
		t.Errorf("%q", got)
	}
}

// What is no file under an index's name is left alone: a FIFO would wait for a writer, and with it the node.
func TestOtherThingsAreSkipped(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
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
	if n := found(t, open(t, Options{Dir: dir})); n != samples {
		t.Errorf("%d found", n)
	}
}

// In a folder that is steady what is in use stays. A Cache takes what there is room for, loses none of it, and says once that there is no more.
func TestSteadyFolder(t *testing.T) {
	dir := t.TempDir()
	first := open(t, Options{Dir: dir, Steady: true})
	fill(first)
	first.Close()
	size := bytesIn(t, dir)
	for _, more := range []int64{1 - size, 0, 100, 1000, size - 1, size} {
		folder := t.TempDir()
		if err := os.CopyFS(folder, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		told := 0
		o := Options{Dir: folder, Steady: true, MaxBytes: size + more, pendingBytes: 1000, Trouble: func(err error) {
			if told++; !errors.Is(err, ErrFull) {
				t.Error(err)
			}
		}}
		other, err := Open("other", samples, o)
		if err != nil {
			t.Fatal(err)
		}
		kept := 0
		for i := range samples {
			_, make := other.Find(i, fileOf(i), nil)
			if make != (kept == i) {
				t.Errorf("%d more bytes: record %d is wanted: %t", more, i, make)
			}
			if other.PutAll(t.Context(), i, fileOf(i), wantOf(i)) {
				kept++
			}
		}
		other.Close()
		if want := number(kept < samples); told != want {
			t.Errorf("%d more bytes: told %d times", more, told)
		}
		if n := bytesIn(t, folder); n > max(size, size+more) || kept == samples && more < size {
			t.Errorf("%d more bytes: %d in all, %d kept", more, n, kept)
		}
		if n := found(t, open(t, Options{Dir: folder, Steady: true, ReadOnly: true})); n != samples {
			t.Errorf("%d more bytes: %d found of what was there", more, n)
		}
		again, err := Open("other", samples, Options{Dir: folder, ReadOnly: true, Trouble: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		if n := found(t, again); n != kept || again.PutAll(t.Context(), 0, fileOf(0), wantOf(0)) {
			t.Errorf("%d more bytes: %d found of %d that were kept, or one more is", more, n, kept)
		}
		again.Close()
	}
}

func number(one bool) int {
	if one {
		return 1
	}
	return 0
}

// In a steady folder data sets that were not opened for a week make room, and no others.
func TestStaleFilesMakeRoom(t *testing.T) {
	dir := t.TempDir()
	first := open(t, Options{Dir: dir, Steady: true})
	fill(first)
	first.Close()
	size := bytesIn(t, dir)
	for _, c := range []struct {
		age  time.Duration
		want int
	}{{staleAge - time.Hour, 0}, {staleAge + time.Hour, samples}} {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		opened := time.Now().Add(-c.age)
		for _, f := range files {
			if err := os.Chtimes(filepath.Join(dir, f.Name()), opened, opened); err != nil {
				t.Fatal(err)
			}
		}
		other, err := Open("other", samples, Options{Dir: dir, Steady: true, MaxBytes: size})
		if err != nil {
			t.Fatal(err)
		}
		fill(other)
		if n := found(t, other); n != c.want {
			t.Errorf("%v: %d records", c.age, n)
		}
		other.Close()
		if n := bytesIn(t, dir); n > size {
			t.Errorf("%v: %d bytes, %d may be", c.age, n, size)
		}
	}
}
