package imageindex

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func openedByContent(t testing.TB, o Options) *Cache {
	t.Helper()
	s, err := OpenByContent("records", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// filedByContent is a folder with records about all samples in one file, and its size.
func filedByContent(t *testing.T) (dir string, size int64) {
	t.Helper()
	dir = t.TempDir()
	s := openedByContent(t, Options{Dir: dir})
	fill(s)
	s.Close()
	return dir, bytesIn(t, dir)
}

// age has the files of a folder last be used so long ago.
func age(t *testing.T, dir string, by time.Duration) {
	t.Helper()
	then := time.Now().Add(-by)
	for _, name := range filesIn(t, dir) {
		if err := os.Chtimes(name, then, then); err != nil {
			t.Fatal(err)
		}
	}
}

// fillFrom puts records about other files than those of the samples from 0 on, and counts those that are kept.
func fillFrom(t *testing.T, s *Cache, first int) (kept int) {
	t.Helper()
	for i := first; i < first+samples; i++ {
		if s.PutAll(t.Context(), 0, digestOf(i), wantOf(i)) {
			kept++
		}
	}
	return kept
}

// foundFrom counts the records that fillFrom put.
func foundFrom(t *testing.T, s *Cache, first int) (n int) {
	t.Helper()
	for i := first; i < first+samples; i++ {
		data, _ := s.Find(0, digestOf(i), nil)
		if len(data) > 0 && string(data) != string(wantOf(i)) {
			t.Fatalf("file %d: %x", i, data)
		}
		n += min(len(data), 1)
	}
	return n
}

// A record by content is found for a file with those bytes, whichever sample it is, by those who ask by that name.
func TestByContent(t *testing.T) {
	dir := t.TempDir()
	s := openedByContent(t, Options{Dir: dir})
	if _, make := s.Find(-1, digestOf(3), nil); !make || !s.Put(7, digestOf(3), wantOf(3)) {
		t.Error("no record is wanted")
	}
	if data, make := s.Find(1<<40, digestOf(3), nil); string(data) != string(wantOf(3)) || make {
		t.Errorf("found %x", data)
	}
	if data, make := s.Find(7, digestOf(4), nil); len(data) != 0 || !make {
		t.Errorf("found %x for another file", data)
	}
	if before := s.table.held(); !s.Put(7, digestOf(4), nil) || s.table.held() != before {
		t.Error("memory grows with files that have no record")
	}
	s.Close()
	if s.table.held() != 0 || s.held != 0 {
		t.Errorf("%d bytes are held after it was closed", s.held)
	}
	if data, _ := openedByContent(t, Options{Dir: dir}).Find(0, digestOf(3), nil); string(data) != string(wantOf(3)) {
		t.Errorf("the next one found %x", data)
	}
	other, err := OpenByContent("others", Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, s := range []*Cache{other, opened(t, Options{Dir: dir})} {
		if data, _ := s.Find(3, digestOf(3), nil); len(data) != 0 {
			t.Errorf("found %x by another name", data)
		}
	}
}

// A Cache by content takes what there is room for, loses none of it, and says once that there is no more.
func TestFullByContent(t *testing.T) {
	dir, size := filedByContent(t)
	for _, more := range []int64{1 - size, 0, 100, 1000, size - 1, size} {
		folder := t.TempDir()
		if err := os.CopyFS(folder, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		told := 0
		s := openedByContent(t, Options{Dir: folder, MaxBytes: size + more, pendingBytes: 1000, Trouble: func(err error) {
			if told++; !errors.Is(err, ErrFull) {
				t.Error(err)
			}
		}})
		kept := 0
		for i := samples; i < 2*samples; i++ {
			_, make := s.Find(0, digestOf(i), nil)
			if make != (kept == i-samples) {
				t.Errorf("%d more bytes: record %d is wanted: %t", more, i, make)
			}
			if s.PutAll(t.Context(), 0, digestOf(i), wantOf(i)) {
				kept++
			}
		}
		if s.Close(); told != number(kept < samples) {
			t.Errorf("%d more bytes: told %d times", more, told)
		}
		if n := bytesIn(t, folder); n > max(size, size+more) || kept == samples && more < size {
			t.Errorf("%d more bytes: %d in all, %d kept", more, n, kept)
		}
		again := openedByContent(t, Options{Dir: folder, ReadOnly: true, Trouble: func(err error) { t.Error(err) }})
		if n, old := foundFrom(t, again, samples), found(t, again); n != kept || old != samples || fillFrom(t, again, 2*samples) != 0 {
			t.Errorf("%d more bytes: %d found of %d that were kept, %d of what was there; or one more is kept", more, n, kept, old)
		}
	}
}

func number(one bool) int {
	if one {
		return 1
	}
	return 0
}

// Files by content of which no record was used for a week make room, also under the Cache that has them open; no others
// do.
func TestUnusedFilesMakeRoom(t *testing.T) {
	dir, size := filedByContent(t)
	const others = 7 * samples // whose records are as long
	for _, c := range []struct {
		age  time.Duration
		used bool
		want int
	}{{staleAge - time.Hour, false, 0}, {staleAge + time.Hour, true, 0}, {staleAge + time.Hour, false, samples}} {
		age(t, dir, c.age)
		held := int64(0)
		s := openedByContent(t, Options{Dir: dir, MaxBytes: size, Trouble: func(error) {}, Hold: func(n int64) { held += n }})
		if c.used {
			found(t, s)
			s.touchUsed()
			s.measureRoom()
		}
		kept := fillFrom(t, s, others)
		s.flushPending()
		if n := foundFrom(t, s, 0); n != samples-c.want || held != s.table.held() {
			t.Errorf("%v, used: %t: %d old records are there yet, %d bytes are held", c.age, c.used, n, held)
		}
		s.Close()
		if kept != c.want || held != 0 {
			t.Errorf("%v, used: %t: %d records are kept, %d bytes held", c.age, c.used, kept, held)
		}
		last := openedByContent(t, Options{Dir: dir})
		if n, old := foundFrom(t, last, others), foundFrom(t, last, 0); n != c.want || old != samples-c.want || bytesIn(t, dir) > size {
			t.Errorf("%v, used: %t: %d records of the new, %d of the old, %d bytes", c.age, c.used, n, old, bytesIn(t, dir))
		}
	}
}

// That a file is used is said by whoever closes the Cache, or runs on and misses nothing.
func TestUsedFilesAreTouched(t *testing.T) {
	dir := t.TempDir()
	s := openedByContent(t, Options{Dir: dir})
	fill(s)
	s.flushPending()
	fillFrom(t, s, samples)
	s.Close()
	names := filesIn(t, dir)
	if len(names) != 2 {
		t.Fatalf("files %v", names)
	}
	for _, closed := range []bool{true, false} {
		age(t, dir, staleAge)
		s := openedByContent(t, Options{Dir: dir, ReadOnly: true})
		s.Find(0, digestOf(0), nil)
		if closed {
			s.Close()
		} else {
			s.looked = s.looked.Add(-touchAge - time.Second)
			s.Find(0, digestOf(0), nil)
			s.running.Wait()
		}
		used := 0
		for _, name := range names {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			used += number(time.Since(info.ModTime()) < time.Hour)
		}
		if used != 1 {
			t.Errorf("closed: %t: %d of %d files are in use", closed, used, len(names))
		}
	}
}

// A Cache that was full takes records again once there is room for the one that it did not take, and tells once that it was full.
func TestRoomComesBack(t *testing.T) {
	dir, size := filedByContent(t)
	told := 0
	s := openedByContent(t, Options{Dir: dir, MaxBytes: size, Trouble: func(error) { told++ }})
	for _, c := range []struct {
		age  time.Duration
		want int
	}{{0, 0}, {staleAge + time.Hour, samples}} {
		age(t, dir, c.age)
		s.mu.Lock()
		s.looked = s.looked.Add(-lookAge - time.Second)
		s.mu.Unlock()
		s.Find(0, digestOf(99), nil)
		s.running.Wait()
		kept := fillFrom(t, s, 7*samples)
		s.running.Wait()
		if kept != c.want || told != 1 {
			t.Errorf("files of %v ago: %d records are taken, told %d times", c.age, kept, told)
		}
	}
	if kept := fillFrom(t, s, 14*samples); kept != 0 {
		t.Errorf("%d records are taken by a Cache that is full again", kept)
	}
	if s.Close(); told != 1 || bytesIn(t, dir) > size {
		t.Errorf("told %d times, %d bytes of %d", told, bytesIn(t, dir), size)
	}
}

// What others wrote meanwhile is not written again, and what finds no room any more is forgotten: the limit is kept, and all that fits.
func TestTogetherByContent(t *testing.T) {
	_, size := filedByContent(t)
	for _, c := range []struct {
		limit  int64
		first  int // of the records of the other one
		mine   int // records that are kept, at least
		atMost int64
		told   int
	}{
		{10 * size, 0, samples, size, 0},                     // the same
		{10 * size, samples / 2, samples, 2 * size, 0},       // half of them
		{size + size/2, 7 * samples, samples / 4, 0, 1},      // others, and room for a part
		{size + headBytes, 7 * samples, 0, size, 1},          // and for none
		{size + headBytes, 0, samples, size, 0},              // the same, which need none
		{size + 3*size/4, samples / 2, samples, 2 * size, 0}, // half of them, for whose rest there is room
	} {
		dir, told := t.TempDir(), 0
		o := Options{Dir: dir, MaxBytes: c.limit, Trouble: func(err error) {
			if told++; !errors.Is(err, ErrFull) {
				t.Error(err)
			}
		}}
		s := openedByContent(t, o)
		fill(s)
		other := openedByContent(t, o)
		fillFrom(t, other, c.first)
		other.Close()
		s.Close()
		lost, bytes := s.Lost()
		last := openedByContent(t, Options{Dir: dir})
		n := found(t, last)
		if n < c.mine || n+lost != samples || lost == 0 != (bytes == 0) || foundFrom(t, last, c.first) != samples || told != c.told {
			t.Errorf("%+v: %d records are kept, %d of %d bytes lost, %d of the other's, told %d times", c, n, lost, bytes, foundFrom(t, last, c.first), told)
		}
		if all := bytesIn(t, dir); all > c.limit || c.atMost > 0 && all > c.atMost {
			t.Errorf("%+v: %d bytes", c, all)
		}
	}
}

// Records that are damaged are not in use.
func TestDamagedIsNotUsed(t *testing.T) {
	dir := t.TempDir()
	s := openedByContent(t, Options{Dir: dir})
	s.Put(0, digestOf(0), wantOf(0))
	s.Close()
	name := filesIn(t, dir)[0]
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	age(t, dir, staleAge+time.Hour)
	s = openedByContent(t, Options{Dir: dir, MaxBytes: int64(len(data))})
	if n := found(t, s); n != 0 {
		t.Errorf("%d found", n)
	}
	s.touchUsed()
	s.measureRoom()
	if !s.Put(0, digestOf(0), wantOf(0)) || found(t, s) != 1 {
		t.Error("a file of damaged records makes no room")
	}
}

// A clock that was set back does not make what is written the earlier.
func TestClockSetBack(t *testing.T) {
	_, dir, name := filed(t)
	s := opened(t, Options{Dir: t.TempDir()})
	later := filepath.Join(dir, s.filePrefix()+"3000000000000000-1"+ending)
	if err := os.Rename(name, later); err != nil {
		t.Fatal(err)
	}
	s = opened(t, Options{Dir: dir})
	s.Put(3, digestOf(3), []byte("new"))
	s.Close()
	if data, _ := opened(t, Options{Dir: dir}).Find(3, digestOf(3), nil); string(data) != "new" {
		t.Errorf("found %q", data)
	}
}
