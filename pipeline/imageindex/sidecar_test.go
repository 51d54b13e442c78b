package imageindex

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/feedwater-io/feedwater/pipeline/internal/budget"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const samples = 12

// digestOf is of the file of a test's sample, and wantOf its record.
func digestOf(i int) uint64 { return Digest(bytes.Repeat([]byte{byte(i), 1, 2}, 30+i)) }
func wantOf(i int) []byte   { return bytes.Repeat([]byte{byte(i), 9}, 1+i%7) }

func opened(t testing.TB, o Options) *Cache {
	t.Helper()
	s, err := Open("fingerprint", samples, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// fill puts records about all samples.
func fill(s *Cache) {
	for i := range samples {
		s.Put(i, digestOf(i), wantOf(i))
	}
}

// filed is a store with records about all samples in one file, closed.
func filed(t testing.TB) (s *Cache, dir, name string) {
	t.Helper()
	dir = t.TempDir()
	s = opened(t, Options{Dir: dir})
	fill(s)
	s.Close()
	return s, dir, filesIn(t, dir)[0]
}

// found counts the samples that have a record, and fails if one is wrong.
func found(t testing.TB, s *Cache) (n int) {
	t.Helper()
	var buf []byte
	for i := range samples {
		data, make := s.Find(i, digestOf(i), buf)
		if len(data) > 0 && (make || !bytes.Equal(data, wantOf(i))) {
			t.Fatalf("sample %d: %x", i, data)
		}
		if len(data) > 0 {
			n++
		}
		buf = data
	}
	return n
}

func filesIn(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// What was put is found: before it is written, after, and by the next process.
func TestPutIsFound(t *testing.T) {
	o := Options{Dir: filepath.Join(t.TempDir(), "a", "b")}
	s := opened(t, o)
	if _, make := s.Find(3, digestOf(3), nil); !make || found(t, s) != 0 {
		t.Error("an empty store has something, or wants nothing")
	}
	fill(s)
	if n := found(t, s); n != samples {
		t.Errorf("%d found before they were written", n)
	}
	s.Close()
	if n := found(t, s); n != 0 {
		t.Errorf("%d found in a closed store", n)
	}
	if _, make := s.Find(3, digestOf(3), nil); make {
		t.Error("a closed store wants records")
	}
	s.Put(3, digestOf(3), wantOf(3))
	if names := filesIn(t, o.Dir); len(names) != 1 || filepath.Ext(names[0]) != ending {
		t.Errorf("files %v", names)
	}
	if n := found(t, opened(t, o)); n != samples {
		t.Errorf("%d found by the next one", n)
	}
}

// Records are written in the background as they come, and are found at all times.
func TestManySegments(t *testing.T) {
	o := Options{Dir: t.TempDir(), pendingBytes: 90}
	s := opened(t, o)
	for i := range samples {
		s.Put(i, digestOf(i), wantOf(i))
		if data, _ := s.Find(i, digestOf(i), nil); !bytes.Equal(data, wantOf(i)) {
			t.Fatalf("sample %d was not found", i)
		}
		s.running.Wait()
	}
	if n := found(t, s); n != samples {
		t.Errorf("%d found", n)
	}
	s.Close()
	if names := filesIn(t, o.Dir); len(names) < 3 {
		t.Errorf("files %v", names)
	}
	if n := found(t, opened(t, o)); n != samples {
		t.Errorf("%d found by the next one", n)
	}
}

// A record is about some bytes, some sample and some data set, and found for no other.
func TestStaleAndForeign(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	s := opened(t, o)
	fill(s)
	changed := digestOf(5) + 1
	data, make := s.Find(5, changed, nil)
	if len(data) != 0 || !make {
		t.Errorf("found %x for a changed file", data)
	}
	s.Put(5, changed, []byte("new"))
	s.Close()
	s = opened(t, o)
	if data, _ := s.Find(5, changed, nil); string(data) != "new" {
		t.Errorf("found %q, not what came last", data)
	}
	s.Put(7, digestOf(7), nil)
	if data, make := s.Find(7, digestOf(7), nil); len(data) != 0 || make {
		t.Error("found one, or wants one, of a file that has none")
	}
	for _, fingerprint := range []string{"another", "fingerprin"} {
		other, err := Open(fingerprint, samples, o)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		name := filesIn(t, o.Dir)[0]
		if err := other.loadFile(name); !errors.Is(err, errDamaged) || found(t, other) != 0 {
			t.Errorf("%s took a file of fingerprint: %v", fingerprint, err)
		}
	}
	if s.Find(-1, 0, nil); len(filesIn(t, o.Dir)) == 0 {
		t.Error("files are gone")
	}
}

// Whichever bit of a file is flipped, whatever is found is right; what is not is made again.
func TestFlippedBits(t *testing.T) {
	_, dir, name := filed(t)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for bit := range 8 * len(whole) {
		bad := bytes.Clone(whole)
		bad[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open("fingerprint", samples, Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		n := found(t, s)
		if n == samples {
			t.Fatalf("all found with bit %d of byte %d flipped", bit%8, bit/8)
		}
		lost += samples - n
		if bit%97 == 0 {
			fill(s)
			if n := found(t, s); n != samples {
				t.Errorf("%d found after they were made again", n)
			}
			s.options.create = func(string) (writer, error) { return nil, errors.New("not now") }
		}
		s.Close()
	}
	if lost < 8*len(whole) {
		t.Errorf("%d records lost to %d flips", lost, 8*len(whole))
	}
}

// Files that end early, hold something else, or are no files.
func TestDamagedFiles(t *testing.T) {
	_, dir, name := filed(t)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		if err := os.WriteFile(name, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if s := opened(t, Options{Dir: dir}); found(t, s) != 0 {
			t.Fatalf("found something in %d bytes of %d", n, len(whole))
		}
		if len(filesIn(t, dir)) != 0 {
			t.Fatalf("a file of %d bytes is still there", n)
		}
	}
	if err := os.MkdirAll(name, 0o700); err != nil {
		t.Fatal(err)
	}
	if found(t, opened(t, Options{Dir: dir})) != 0 {
		t.Error("found something in a folder")
	}
}

// Files of other formats are left alone, as those of other data sets are: until there is no room.
func TestOtherFormats(t *testing.T) {
	_, dir, name := filed(t)
	other := strings.Replace(name, "."+format+"-", "-", 1)
	if err := os.Rename(name, other); err != nil {
		t.Fatal(err)
	}
	s := opened(t, Options{Dir: dir})
	if n := found(t, s); n != 0 {
		t.Errorf("%d found", n)
	}
	fill(s)
	s.Close()
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(filesIn(t, dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	s = opened(t, Options{Dir: dir, MaxBytes: 2*info.Size() + info.Size()/2})
	s.Put(0, digestOf(0), bytes.Repeat([]byte{1}, int(info.Size())))
	s.Close()
	if _, err := os.Stat(other); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it takes room that is needed: %v", err)
	}
}

// A file that is cut short while it is in use.
func TestCutWhileInUse(t *testing.T) {
	_, dir, name := filed(t)
	s := opened(t, Options{Dir: dir})
	if err := os.Truncate(name, 0); err != nil {
		t.Fatal(err)
	}
	if n := found(t, s); n != 0 && s.segments[0].memory.mapped {
		t.Errorf("%d found", n)
	}
	fill(s)
	if n := found(t, s); n != samples {
		t.Errorf("%d found after they were made again", n)
	}
}

// A fault of a mapped file may pass: it is no damage, for which the file would be removed.
func TestFaultIsNoDamage(t *testing.T) {
	s, _, name := filed(t)
	m, err := mapPath(name)
	if err != nil {
		t.Fatal(err)
	}
	defer m.release()
	if err := os.Truncate(name, 0); err != nil {
		t.Fatal(err)
	}
	err = guardFaults(func() { _, _, err = parseSegment(m.data, s.key, newPlaces(samples).takes) })
	if m.mapped && err == nil || errors.Is(err, errDamaged) {
		t.Errorf("said %v", err)
	}
}

// shortened is a file that somebody cuts short once it is written.
type shortened struct{ writer }

func (s shortened) Close() error {
	return errors.Join(os.Truncate(s.Name(), headBytes+checksumBytes+4), s.writer.Close())
}

// A file that is cut short before it is mapped.
func TestCutBeforeItIsMapped(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	o.create = func(pattern string) (writer, error) {
		f, err := createTemp(pattern)
		return shortened{f}, err
	}
	s := opened(t, o)
	fill(s)
	s.flushPending()
	if n := found(t, s); n != samples {
		t.Errorf("%d found", n)
	}
	s.Close()
	if n := found(t, opened(t, Options{Dir: o.Dir})); n != 0 {
		t.Errorf("%d found in a file that was cut", n)
	}
}

// limited is a file on a disk that has room for so many bytes.
type limited struct {
	writer
	room int
}

func (l *limited) Write(b []byte) (int, error) {
	n, err := l.writer.Write(b[:min(len(b), l.room)])
	l.room -= n
	if n < len(b) {
		err = syscall.ENOSPC
	}
	return n, err
}

// gated is a file on a disk that stands still until the gate is open.
type gated struct {
	writer
	gate chan struct{}
}

func (g gated) Write(b []byte) (int, error) {
	<-g.gate
	return g.writer.Write(b)
}

// behindGate makes files that stand still.
func behindGate(dir string, gate chan struct{}) Options {
	return Options{Dir: dir, pendingBytes: 90, create: func(pattern string) (writer, error) {
		f, err := createTemp(pattern)
		return gated{f, gate}, err
	}}
}

// Behind a disk that stands still no more is gathered than has its room; once it goes on, all is kept.
func TestSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, gate := t.TempDir(), make(chan struct{})
		s := opened(t, behindGate(dir, gate))
		for range 10 { // the first file, and what comes meanwhile
			fill(s)
			synctest.Wait()
		}
		s.mu.Lock()
		gathered := len(s.pending.records)
		s.mu.Unlock()
		if gathered < 2*90 || gathered > 3*90 {
			t.Errorf("%d bytes are gathered", gathered)
		}
		close(gate)
		s.running.Wait()
		s.Put(3, digestOf(3), []byte("later"))
		if data, _ := s.Find(3, digestOf(3), nil); string(data) != "later" {
			t.Error("nothing more is kept")
		}
	})
}

// Who can wait has all records kept, and is told where nothing is kept any more.
func TestPutAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, gate := t.TempDir(), make(chan struct{})
		o := behindGate(dir, gate)
		s := opened(t, o)
		var putting sync.WaitGroup
		for who := range 3 {
			putting.Go(func() {
				for i := who; i < 20*samples; i += 3 {
					if k := i % samples; !s.PutAll(t.Context(), k, digestOf(k), wantOf(k)) {
						t.Errorf("record %d is not kept", i)
					}
				}
			})
		}
		synctest.Wait() // until all wait
		close(gate)
		putting.Wait()
		if n := found(t, s); n != samples {
			t.Errorf("%d found", n)
		}
		s.Close()
		if s.PutAll(t.Context(), 0, digestOf(0), wantOf(0)) {
			t.Error("a closed store keeps something")
		}
		o.create = func(string) (writer, error) { return nil, syscall.EROFS }
		s = opened(t, o)
		for range 3 {
			fill(s)
			s.running.Wait()
		}
		if s.PutAll(t.Context(), 0, digestOf(0), wantOf(0)) {
			t.Error("kept where nothing can be written")
		}
	})
}

// A disk that is full, at any byte, or may not be written: what was there is found, nothing is left behind, and
// somebody is told, once.
func TestDiskTakesNothing(t *testing.T) {
	for room := range 500 {
		dir := t.TempDir()
		var told []error
		o := Options{Dir: dir, pendingBytes: 1 << 20, Trouble: func(err error) { told = append(told, err) }}
		o.create = func(pattern string) (writer, error) {
			if room == 0 {
				return nil, syscall.EROFS
			}
			f, err := createTemp(pattern)
			return &limited{f, room - 1}, err
		}
		s := opened(t, o)
		fill(s)
		s.flushPending()
		if n := found(t, s); n != samples {
			t.Fatalf("%d found", n)
		}
		if _, make := s.Find(0, 0, nil); make {
			t.Fatal("more is wanted")
		}
		s.Put(1, digestOf(2), []byte("more"))
		s.Close()
		if len(told) != 1 || !errors.Is(told[0], syscall.ENOSPC) && !errors.Is(told[0], syscall.EROFS) {
			t.Fatalf("told %v", told)
		}
		if names := filesIn(t, dir); len(names) != 0 {
			t.Fatalf("left behind: %v", names)
		}
	}
	var told error
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := opened(t, Options{Dir: filepath.Join(blocked, "index"), Trouble: func(err error) { told = err }})
	fill(s)
	s.Close()
	if !errors.Is(told, syscall.ENOTDIR) || !strings.Contains(told.Error(), blocked) {
		t.Errorf("told %v", told)
	}
}

// The files of data sets that were not used for longest make room; one data set alone stops at the limit.
func TestLimit(t *testing.T) {
	dir := t.TempDir()
	var told error
	o := Options{Dir: dir, MaxBytes: 2100, Trouble: func(err error) { told = err }}
	for i := range 5 {
		s, err := Open(fmt.Sprint("data ", i), samples, o)
		if err != nil {
			t.Fatal(err)
		}
		fill(s)
		s.Close()
		for _, name := range filesIn(t, dir) { // an hour goes by
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			then := info.ModTime().Add(-time.Hour)
			if err := os.Chtimes(name, then, then); err != nil {
				t.Fatal(err)
			}
		}
		if i == 2 { // the first one is used again
			if s, err = Open("data 0", samples, o); err != nil || found(t, s) != samples {
				t.Fatal("it is gone", err)
			}
			s.Close()
		}
	}
	total := int64(0)
	for _, name := range filesIn(t, dir) {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if total > o.MaxBytes || told != nil {
		t.Errorf("%d bytes, %v", total, told)
	}
	for i, want := range []int{samples, 0, 0, samples, samples} {
		s, err := Open(fmt.Sprint("data ", i), samples, Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if n := found(t, s); n != want {
			t.Errorf("%d of data %d", n, i)
		}
		s.Close()
	}
	o.MaxBytes = 300
	s := opened(t, o)
	fill(s)
	s.Close()
	if !errors.Is(told, ErrFull) {
		t.Errorf("told %v", told)
	}
}

// Several stores build at once and read one another's files.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for who := range 4 {
		all.Go(func() {
			s, err := Open("fingerprint", samples, Options{Dir: dir, pendingBytes: 90})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			var workers sync.WaitGroup
			for range 3 {
				workers.Go(func() {
					var buf []byte
					for k := range 4 * samples {
						i := (k*7 + who*11) % samples
						data, make := s.Find(i, digestOf(i), buf)
						if len(data) > 0 && !bytes.Equal(data, wantOf(i)) {
							t.Errorf("sample %d: %x", i, data)
						}
						if make {
							s.Put(i, digestOf(i), wantOf(i))
						}
						buf = data
					}
				})
			}
			workers.Wait()
		})
	}
	all.Wait()
	if n := found(t, opened(t, Options{Dir: dir})); n != samples {
		t.Errorf("%d found", n)
	}
}

// A store finds what another process wrote meanwhile.
func TestFilesOfOthers(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, Options{Dir: dir})
	other := opened(t, Options{Dir: dir})
	fill(other)
	other.Close()
	s.mu.Lock()
	s.looked = s.looked.Add(-lookAge - time.Second)
	s.mu.Unlock()
	s.Find(0, digestOf(0), nil)
	s.running.Wait()
	if n := found(t, s); n != samples {
		t.Errorf("%d found", n)
	}
}

// What was gathered is written after a while, also where nothing more comes.
func TestOldRecordsAreWritten(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, Options{Dir: dir})
	fill(s)
	found(t, s)
	s.running.Wait()
	if names := filesIn(t, dir); len(names) != 0 {
		t.Errorf("written at once: %v", names)
	}
	s.mu.Lock()
	s.pending.begun = s.pending.begun.Add(-flushAge - time.Second)
	s.mu.Unlock()
	found(t, s)
	s.running.Wait()
	if names := filesIn(t, dir); len(names) != 1 {
		t.Errorf("files %v", names)
	}
	if n := found(t, s); n != samples {
		t.Errorf("%d found", n)
	}
}

// Files that no Cache made stay, old ones too, and do not count; and a Cache makes no room by its own files.
func TestFilesOfOtherPrograms(t *testing.T) {
	dir := t.TempDir()
	_, made, name := filed(t)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	others := []string{"results.tmp", "model.ckpt-100.index", strings.Repeat("a", 32) + "-shard.index", filepath.Base(made) + ".tmp"}
	long := time.Now().Add(-2 * time.Hour)
	for _, other := range others {
		path := filepath.Join(dir, other)
		if err := errors.Join(os.WriteFile(path, make([]byte, 10_000), 0o600), os.Chtimes(path, long, long)); err != nil {
			t.Fatal(err)
		}
	}
	var told error
	o := Options{Dir: dir, MaxBytes: int64(len(whole)), Trouble: func(err error) { told = err }}
	s := opened(t, o)
	fill(s)
	s.Close()
	if told != nil || found(t, opened(t, o)) != samples {
		t.Errorf("what just fits is not kept: %v", told)
	}
	s = opened(t, o)
	s.Put(0, Digest([]byte("anew")), wantOf(0))
	s.Close()
	if !errors.Is(told, ErrFull) || found(t, opened(t, o)) != samples {
		t.Errorf("it made room by its own file: %v", told)
	}
	for _, other := range others {
		if _, err := os.Stat(filepath.Join(dir, other)); err != nil {
			t.Error(err)
		}
	}
}

// Leftovers of killed processes go.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, strings.Repeat("0a", 16)+".1-0123456789abcdef-")
	old, fresh := name+"1"+unfinished, name+"2"+unfinished
	for _, name := range []string{old, fresh} {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	then := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, then, then); err != nil {
		t.Fatal(err)
	}
	s := opened(t, Options{Dir: dir})
	fill(s)
	s.Close()
	if names := filesIn(t, dir); len(names) != 2 {
		t.Errorf("files %v", names)
	}
}

func TestFindAllocatesNothing(t *testing.T) {
	s := opened(t, Options{Dir: t.TempDir()})
	fill(s)
	files := make([]uint64, samples)
	for i := range files {
		files[i] = digestOf(i)
	}
	buf := make([]byte, 0, 1<<10)
	if n := testing.AllocsPerRun(20, func() {
		for i, f := range files {
			if data, _ := s.Find(i, f, buf); len(data) == 0 {
				t.Fatal("not found")
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzFile: whatever a file holds, what is found is right.
func FuzzFile(f *testing.F) {
	dir := f.TempDir()
	s := opened(f, Options{Dir: dir})
	fill(s)
	s.Close()
	whole, err := os.ReadFile(filesIn(f, dir)[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:headBytes])
	s = opened(f, Options{Dir: f.TempDir()})
	name := filepath.Join(f.TempDir(), "file")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		budget.Hold(t, 1<<16+4*uint64(len(data)), func() {
			err := s.loadFile(name)
			if n := found(t, s); err != nil && n != 0 {
				t.Fatalf("%d found in a file that is refused", n)
			}
		})
		s.mu.Lock()
		defer s.mu.Unlock()
		for i := range s.segments {
			s.segments[i].freeMemory()
		}
		s.segments = nil
		s.table = newPlaces(samples)
	})
}
