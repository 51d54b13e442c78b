package pipeline

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/imageindex"
	"github.com/feedwater-io/feedwater/pipeline/revision"
)

// skipPlan leaves out what does not decode.
var skipPlan = fmt.Sprintf(cropPlan, `, "on_error": "skip"`)

// indexFolder is the pictures with some that have no index, or do not decode.
func indexFolder(t *testing.T) string {
	t.Helper()
	dir := folder(t)
	m := jpegtest.Photograph(3, 3, 120, 90)
	whole := jpegtest.Encode(m, jpegtest.Options{})
	write(t, dir+"/class_0/progressive.jpg", jpegtest.Encode(m, jpegtest.Options{Progressive: jpegtest.Script(3)}))
	write(t, dir+"/class_1/damaged.jpg", append(bytes.Clone(whole[:len(whole)/2]), 0xff, 0xd9))
	write(t, dir+"/class_1/truncated.jpg", whole[:len(whole)/2])
	write(t, dir+"/class_2/text.jpg", []byte("no picture"))
	return dir
}

// indexCount is how many samples of a job have an index, written or not.
func indexCount(t *testing.T, j *Job) (n int) {
	t.Helper()
	for i := range int(j.Samples()) {
		file, err := j.snapshot.Read(t.Context(), i, nil)
		if err != nil {
			t.Fatal(err)
		}
		if index, _ := j.indexNow().Find(i, file, nil); len(index) > 0 {
			n++
		}
	}
	return n
}

func indexFiles(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.index"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// epochs digests two epochs: in the first one indexes may be made, in the second one they are used.
func epochs(t *testing.T, j *Job) (digests [2]string) {
	t.Helper()
	for e := range digests {
		digests[e] = epochDigest(t, j, uint32(e), 5)
	}
	return digests
}

// checkIndexed opens a pipeline of its own on a folder, and looks for the bytes of its epochs, and for how many pictures
// have an index then.
func checkIndexed(t *testing.T, what, dir string, o Options, want [2]string, indexed int) {
	t.Helper()
	p, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	j := prepare(t, p, dir, skipPlan)
	if got := epochs(t, j); got != want {
		t.Errorf("%s: other bytes", what)
	}
	if n := indexCount(t, j); n != indexed {
		t.Errorf("%s: %d pictures have an index, not %d", what, n, indexed)
	}
}

// An index changes no byte and no verdict: not while it is made, not when it is used, nor by the next process, nor with other workers; not
// damaged, stale or where it cannot be kept.
func TestIndexChangesNothing(t *testing.T) {
	dir, cache := indexFolder(t), t.TempDir()
	want := epochs(t, open(t, dir, skipPlan, Options{}))
	run := func(what string, o Options, indexed int) {
		t.Helper()
		checkIndexed(t, what, dir, o, want, indexed)
	}
	const all = 18 // of 21 pictures in one scan 3 have restart markers
	run("first", Options{Index: &IndexOptions{Dir: cache}}, all)
	if n := len(indexFiles(t, cache)); n != 1 {
		t.Fatalf("%d files", n)
	}
	run("again", Options{Workers: 1, Index: &IndexOptions{Dir: cache}}, all)
	run("another interval", Options{Workers: 3, Index: &IndexOptions{Dir: t.TempDir(), Interval: 2}}, all)
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		name := indexFiles(t, cache)[r.IntN(len(indexFiles(t, cache)))]
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		data[r.IntN(len(data))] ^= 1 << r.IntN(8)
		write(t, name, data)
		run("a flipped bit", Options{Index: &IndexOptions{Dir: cache}}, all)
	}
	var told error
	blocked := filepath.Join(t.TempDir(), "file")
	write(t, blocked, nil)
	run("no folder", Options{Index: &IndexOptions{Dir: blocked, Trouble: func(err error) { told = err }}}, all) // in memory
	if told == nil {
		t.Error("nobody was told that nothing was kept")
	}
	run("no room", Options{Index: &IndexOptions{Dir: t.TempDir(), MaxBytes: 1, Trouble: func(err error) { told = err }}}, all)
	if !errors.Is(told, imageindex.ErrFull) {
		t.Errorf("told %v", told)
	}
}

// Where there are more pictures than stores may hold, the data set that no job was prepared for since longest loses its own.
func TestStoresOfManyDataSets(t *testing.T) {
	var x indexStores
	x.keepIn(IndexOptions{Dir: t.TempDir()}, revision.Build(), bulkhead.New(bulkhead.Options{}))
	defer x.closeStores()
	const most = 30
	x.most = most * imageindex.HeldBytes(1)
	first, second := x.storeOf("0", 1), x.storeOf("1", 1)
	for i := 2; i < most; i++ {
		x.storeOf(fmt.Sprint(i), 1)
	}
	var told atomic.Int32
	x.index.Trouble = func(err error) {
		if told.Add(1); !errors.Is(err, ErrManyIndexes) {
			t.Error(err)
		}
	}
	if x.storeOf("0", 1) != first {
		t.Fatal("a store was opened twice")
	}
	x.storeOf("another", 1)
	if x.storeOf("0", 1) != first {
		t.Error("the store that was asked for last is gone")
	}
	if x.storeOf("1", 1) == second {
		t.Error("the store that was not asked for is kept")
	}
	if x.storeOf("huge", 1000*most).now() == nil || len(x.stores) != 1 {
		t.Errorf("%d stores are open beside one that is larger than all may be", len(x.stores))
	}
	x.closeStores()
	if told.Load() != 2+most {
		t.Errorf("%d data sets lost their indexes, told %d times", 2+most, told.Load())
	}
}

// sicken makes a root sick until the test ends.
func sicken(t *testing.T, r *bulkhead.Root) {
	t.Helper()
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	_, err := bulkhead.Do(context.Background(), r, "ask", func(func()) (int, error) { <-never; return 0, nil }, nil)
	if !errors.As(err, new(*bulkhead.HungError)) {
		t.Fatal(err)
	}
}

// A store that makes room, or is closed at the end, gives its memory back although its folder does not answer. In a bubble of synctest, as all that
// asks storage which answers under a short deadline: there no call that the kernel works on passes a deadline, however slow the machine is.
func TestStoresOfASickFolderAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		roots := bulkhead.New(bulkhead.Options{Deadline: 20 * time.Millisecond, Patience: time.Millisecond, ProbeEvery: time.Hour})
		defer roots.Close()
		var held atomic.Int64
		var x indexStores
		x.keepIn(IndexOptions{Dir: t.TempDir(), Hold: func(n int64) { held.Add(n) }, Trouble: func(error) {}}, revision.Build(), roots)
		x.most = 3 * imageindex.HeldBytes(1)
		for i := range 3 {
			if x.storeOf(fmt.Sprint(i), 1).now() == nil {
				t.Fatal("no store")
			}
		}
		sicken(t, x.root)
		if x.storeOf("another", 2).now() != nil {
			t.Error("a store of a folder that does not answer")
		}
		x.running.Wait()
		if got := held.Load(); got <= 0 || got > imageindex.HeldBytes(1) {
			t.Errorf("%d bytes are held by one store", got)
		}
		if x.closeStores(); held.Load() != 0 {
			t.Errorf("%d bytes are held by none", held.Load())
		}
	})
}

// Who is interrupted while the folder of the index does not answer is not told that what was made is kept.
func TestIndexSnapshotCountsWhatIsKept(t *testing.T) {
	copied, progressive, lossy := copiedFolder(t)
	t.Run("indexes", func(t *testing.T) { countWhatIsKept(t, indexFolder(t), 0, 18) })
	t.Run("copies", func(t *testing.T) { countWhatIsKept(t, copied, 1<<30, progressive+lossy) })
}

// countWhatIsKept interrupts who makes indexes of a folder, or as many copies.
func countWhatIsKept(t *testing.T, dir string, copyBytes int64, all int) {
	synctest.Test(t, func(t *testing.T) {
		cache := t.TempDir()
		s, err := dataset.Open(context.Background(), dir, dataset.Options{CacheDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		roots := bulkhead.New(bulkhead.Options{Deadline: 100 * time.Millisecond, Patience: time.Millisecond, ProbeEvery: time.Hour})
		defer roots.Close()
		ctx, cancel := context.WithCancel(context.Background())
		options := IndexOptions{Dir: cache, CopyBytes: copyBytes}
		made := 0
		n, err := IndexSnapshot(ctx, roots, s, options, 1, func(n Indexed) {
			if made == 0 && (copyBytes == 0 && n.Made == 5 || n.Copies == 5) {
				made = n.Made
				sicken(t, roots.Of(cache))
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || n.Made != 0 || n.Lost != made || n.Copies != 0 || n.IndexBytes != 0 {
			t.Errorf("%+v, %v", n, err)
		}
		well := bulkhead.New(bulkhead.Options{})
		defer well.Close()
		again, err := IndexSnapshot(context.Background(), well, s, options, 1, nil)
		if err != nil || again.Kept != 0 || copyBytes == 0 && again.Made != all || copyBytes > 0 && again.Copies != all {
			t.Errorf("%+v, %v", again, err)
		}
	})
}

// Several pipelines that make the same index at once.
func TestIndexTogether(t *testing.T) {
	dir, cache := indexFolder(t), t.TempDir()
	want := epochs(t, open(t, dir, skipPlan, Options{}))
	var all sync.WaitGroup
	for range 3 {
		p, err := Open(Options{Workers: 2, Index: &IndexOptions{Dir: cache}})
		if err != nil {
			t.Fatal(err)
		}
		j := prepare(t, p, dir, skipPlan)
		all.Go(func() {
			if got := epochs(t, j); got != want {
				t.Error("other bytes")
			}
			p.Close()
		})
	}
	all.Wait()
	j := open(t, dir, skipPlan, Options{Index: &IndexOptions{Dir: cache}})
	if n, got := indexCount(t, j), epochs(t, j); n != 18 || got != want {
		t.Errorf("%d indexes, other bytes: %v", n, got != want)
	}
}

// A file that was overwritten with another picture of the same size in the same nanosecond has the pixels of that picture.
func TestStaleIndex(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	a := jpegtest.Encode(jpegtest.Photograph(1, 1, 100, 80), jpegtest.Options{})
	b := jpegtest.Encode(jpegtest.Photograph(2, 2, 100, 80), jpegtest.Options{})
	size := max(len(a), len(b))
	path := filepath.Join(dir, "a", "x.jpg")
	write(t, path, append(a, make([]byte, size-len(a))...))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Index: &IndexOptions{Dir: cache}}
	j := open(t, dir, skipPlan, o)
	before := epochs(t, j)
	write(t, path, append(b, make([]byte, size-len(b))...))
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	want := epochs(t, open(t, dir, skipPlan, Options{}))
	if got := epochs(t, j); got != want || got == before {
		t.Error("not the pixels of the new file")
	}
	if n := indexCount(t, j); n != 1 {
		t.Error("its index was not made again")
	}
}

// Pictures indexed ahead of time; what is there is kept, unless it has another interval.
func TestIndexSnapshot(t *testing.T) {
	dir, cache := indexFolder(t), t.TempDir()
	s, err := dataset.Open(context.Background(), dir, dataset.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	told := 0
	run := func(interval int) Indexed {
		t.Helper()
		n, err := IndexSnapshot(context.Background(), bulkhead.New(bulkhead.Options{}), s, IndexOptions{Dir: cache, Interval: interval}, 2, func(Indexed) { told++ })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := run(8)
	if first.Seen != 25 || first.Made != 18 || first.None != 7 || first.IndexBytes == 0 || first.FileBytes == 0 || told != 25 {
		t.Errorf("%+v, told %d times", first, told)
	}
	if n := run(8); n.Kept != 18 || n.Made != 0 || n.IndexBytes != first.IndexBytes {
		t.Errorf("again %+v", n)
	}
	if n := run(2); n.Kept != 0 || n.Made != 18 || n.IndexBytes <= first.IndexBytes {
		t.Errorf("with another interval %+v", n)
	}
	if n := run(2); n.Kept != 18 {
		t.Errorf("that again %+v", n)
	}
	want := epochs(t, open(t, dir, skipPlan, Options{}))
	if got := epochs(t, open(t, dir, skipPlan, Options{Index: &IndexOptions{Dir: cache}})); got != want {
		t.Error("other bytes")
	}
}

// Who is interrupted keeps what was made; who has no place to keep it is told.
func TestIndexSnapshotEnds(t *testing.T) {
	dir, cache := indexFolder(t), t.TempDir()
	s, err := dataset.Open(context.Background(), dir, dataset.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	n, err := IndexSnapshot(ctx, bulkhead.New(bulkhead.Options{}), s, IndexOptions{Dir: cache}, 1, func(n Indexed) {
		if n.Made == 5 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || n.Made != 5 {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err := IndexSnapshot(context.Background(), bulkhead.New(bulkhead.Options{}), s, IndexOptions{Dir: cache}, 2, nil); err != nil || n.Kept != 5 || n.Made != 13 {
		t.Errorf("%+v, %v", n, err)
	}
	if _, err := IndexSnapshot(context.Background(), bulkhead.New(bulkhead.Options{}), s, IndexOptions{Dir: t.TempDir(), MaxBytes: 1}, 2, nil); !errors.Is(err, imageindex.ErrFull) {
		t.Errorf("%v", err)
	}
	write(t, filepath.Join(dir, "class_0", "img_0.jpg"), []byte("changed"))
	if n, err := IndexSnapshot(context.Background(), bulkhead.New(bulkhead.Options{}), s, IndexOptions{Dir: cache}, 2, nil); err != nil || n.Failed != 1 || n.Failure == nil {
		t.Errorf("%+v, %v", n, err)
	}
}

// When the storage of indexes comes back the files are opened anew: what was open may hang for ever.
func TestIndexIsOpenedAnewWhenItsStorageComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, cache := indexFolder(t), t.TempDir()
		roots := bulkhead.New(bulkhead.Options{})
		defer roots.Close()
		back := make(chan struct{})
		roots.OnChange(func(s bulkhead.State) {
			if !s.Sick {
				close(back)
			}
		})
		p, err := Open(Options{Workers: 2, Index: &IndexOptions{Dir: cache}, Storage: roots})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		j := prepare(t, p, dir, skipPlan)
		epochs(t, j)
		before, count := j.indexNow(), indexCount(t, j)
		if before == nil || before != j.indexNow() || count == 0 {
			t.Fatalf("%d indexes; the store is another one each time: %v", count, before != j.indexNow())
		}
		p.indexes.shutStore(p.indexes.stores[0]) // writes what was gathered
		never := make(chan struct{})
		defer close(never)
		_, err = bulkhead.DoOnce(t.Context(), p.indexes.root, "hang", func(func()) (int, error) { <-never; return 0, nil }, nil, nil)
		if !errors.As(err, new(*bulkhead.HungError)) {
			t.Fatal(err)
		}
		<-back
		if after := j.indexNow(); after == nil || after == before || j.indexNow() != after {
			t.Error("the store of before is still in use, or another one each time")
		}
		if n := indexCount(t, j); n != count {
			t.Errorf("%d indexes, were %d", n, count)
		}
	})
}

// copiedFolder has pictures of which there are copies, progressive ones and lossy WebP, and one of each other kind.
func copiedFolder(t *testing.T) (dir string, progressive, lossy int) {
	t.Helper()
	dir = indexFolder(t)
	for i := range 12 {
		m := jpegtest.Photograph(uint64(i), i, 90+10*i, 200-9*i)
		write(t, fmt.Sprintf("%s/class_%d/progressive-%d.jpg", dir, i%2, i), jpegtest.Encode(m, jpegtest.Options{Progressive: jpegtest.Script(3), Quality: 60 + 3*i}))
	}
	z, err := zip.OpenReader("codec/testdata/corpus.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, name := range []string{"webp-lossy-101x67", "webp-glass-64x48"} {
		file, err := fs.ReadFile(z, name)
		if err != nil {
			t.Fatal(err)
		}
		write(t, fmt.Sprintf("%s/class_0/%s.webp", dir, name), file)
	}
	return dir, 13, 2 // with that of indexFolder
}

// Copies change no byte, are found by the next process, and are made only where they have a share of the disk, also of files that had another index; where
// that is full those that are there stay.
func TestCopiesChangeNothing(t *testing.T) {
	dir, progressive, lossy := copiedFolder(t)
	cache, other := t.TempDir(), t.TempDir()
	want := epochs(t, open(t, dir, skipPlan, Options{}))
	runFull := func(what, dir string, x IndexOptions, indexed int, full int64) {
		t.Helper()
		var told atomic.Int64
		x.Trouble = func(err error) {
			if told.Add(1); !errors.Is(err, ErrCopiesFull) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if checkIndexed(t, what, dir, Options{Index: &x}, want, indexed); told.Load() != full {
			t.Errorf("%s: told %d times of no room, want %d", what, told.Load(), full)
		}
	}
	run := func(what, dir string, x IndexOptions, indexed int) {
		t.Helper()
		runFull(what, dir, x, indexed, 0)
	}
	countCopies := func(what, cache string, want int) {
		t.Helper()
		j := open(t, dir, skipPlan, Options{Index: &IndexOptions{Dir: cache}})
		copies := 0
		for i := range int(j.Samples()) {
			file, err := j.snapshot.Read(t.Context(), i, nil)
			if err != nil {
				t.Fatal(err)
			}
			if index, _ := j.indexNow().Find(i, file, nil); codec.IsCopy(index) {
				copies++
			}
		}
		if copies != want {
			t.Errorf("%s: %d copies, want %d", what, copies, want)
		}
	}
	small := 18 + lossy
	run("no share", dir, IndexOptions{Dir: cache}, small)
	run("first", dir, IndexOptions{Dir: cache, CopyBytes: 1 << 30}, small+progressive)
	countCopies("first", cache, progressive+lossy)
	copies := indexFiles(t, filepath.Join(cache, copiesFolder))
	if len(copies) != 1 {
		t.Fatalf("%d files", len(copies))
	}
	run("again", dir, IndexOptions{Dir: cache, CopyBytes: 1 << 30}, small+progressive)
	run("a full share", dir, IndexOptions{Dir: cache, CopyBytes: 1}, small+progressive) // those that are there are used
	run("no share", dir, IndexOptions{Dir: cache}, small+progressive)                   // as whoever trains with what `feedwater index` made
	runFull("none", dir, IndexOptions{Dir: other, CopyBytes: 1}, small, 1)
	countCopies("none", other, 0)
	first, another := want, dir+"/class_0/progressive-0.jpg"
	if err := os.Remove(another); err != nil {
		t.Fatal(err)
	}
	want = epochs(t, open(t, dir, skipPlan, Options{}))
	run("another data set with the same files but one", dir, IndexOptions{Dir: cache, CopyBytes: 1}, small+progressive-1)
	write(t, another, jpegtest.Encode(jpegtest.Photograph(0, 0, 90, 200), jpegtest.Options{Progressive: jpegtest.Script(3), Quality: 60}))
	want = first
	if after := indexFiles(t, filepath.Join(cache, copiesFolder)); !slices.Equal(after, copies) {
		t.Errorf("%d files, not those that were there", len(after))
	}
	data, err := os.ReadFile(copies[0])
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 3))
	for range 10 {
		b := slices.Clone(data)
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		write(t, copies[0], b)
		run("a flipped bit", dir, IndexOptions{Dir: cache, CopyBytes: 1 << 30}, small+progressive)
		for _, name := range indexFiles(t, filepath.Join(cache, copiesFolder)) {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A job whose index takes long to open begins without, and goes on with it.
func TestIndexThatOpensLate(t *testing.T) {
	j := open(t, indexFolder(t), skipPlan, Options{Index: &IndexOptions{Dir: t.TempDir()}})
	ready := j.index.Load()
	late := &namedStore{generation: ready.generation, ready: make(chan struct{})}
	if j.index.Store(late); j.indexNow() != nil {
		t.Error("an index that is not open")
	}
	late.records = ready.now()
	if close(late.ready); j.indexNow() != ready.now() {
		t.Error("the index is not used once it is open")
	}
}

// Copies are opened once for all data sets, and given back where their folder did not answer meanwhile.
func TestSharedCopies(t *testing.T) {
	held := int64(0)
	x := IndexOptions{Dir: t.TempDir(), CopyBytes: 1 << 20, Hold: func(n int64) { held += n }}.withDefaults()
	once, late := &sharedCopies{}, &sharedCopies{}
	opened := func() (*copyStore, error) { return x.openCopies(revision.Build()) }
	first, err := once.openOnce(opened)
	if err != nil {
		t.Fatal(err)
	}
	again, err := once.openOnce(func() (*copyStore, error) { return nil, errors.New("opened twice") })
	if again != first || err != nil || once.now() != first || once.failed() {
		t.Errorf("%v, %v", again, err)
	}
	first.Put(0, 1, []byte("record"))
	stores := indexStores{copies: once}
	if stores.copiesIn(0) != once || stores.copiesIn(1) == once || held != 0 {
		t.Errorf("%d bytes are held", held)
	}
	cache, err := late.openOnce(func() (*copyStore, error) {
		cache, err := opened()
		cache.Put(0, 1, []byte("record"))
		late.leave()
		return cache, err
	})
	if cache != nil || !errors.Is(err, errLeft) || !late.failed() || held != 0 {
		t.Errorf("%v, %v, %d bytes are held", cache, err, held)
	}
}

// listed is a folder's snapshot, and roots that are well, until the test ends.
func listed(t *testing.T, dir string) (*bulkhead.Roots, *dataset.Snapshot) {
	t.Helper()
	roots := bulkhead.New(bulkhead.Options{})
	t.Cleanup(roots.Close)
	data, err := OpenFolder(t.Context(), roots, dir, dataset.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { data.Close() })
	return roots, data
}

// IndexSnapshot makes copies ahead of time, once.
func TestIndexSnapshotMakesCopies(t *testing.T) {
	dir, progressive, lossy := copiedFolder(t)
	cache := t.TempDir()
	roots, data := listed(t, dir)
	small, copies := 18+lossy, progressive+lossy
	for i, c := range []struct {
		dir   string
		share int64
		want  Indexed
	}{
		{cache, 0, Indexed{Made: small}},
		{cache, 1, Indexed{Kept: small, CopiesFull: true}},
		{cache, 1 << 30, Indexed{Made: copies, Kept: small - lossy, Copies: copies}},
		{cache, 1 << 30, Indexed{Kept: small + progressive, Copies: copies}},
		{cache, 0, Indexed{Kept: small + progressive, Copies: copies}},
		{t.TempDir(), 1, Indexed{Made: small, CopiesFull: true}}, // those without a copy have the other index at once
	} {
		done, err := IndexSnapshot(t.Context(), roots, data, IndexOptions{Dir: c.dir, CopyBytes: c.share}, 2, nil)
		got := Indexed{Made: done.Made, Kept: done.Kept, Copies: done.Copies, CopiesFull: done.CopiesFull}
		if err != nil || got != c.want || done.Seen != done.Made+done.Kept+done.None+done.Failed || done.Lost != 0 {
			t.Errorf("%d: %+v, %v", i, done, err)
		}
	}
}

// Copies of another interval stay where none may be made, and count.
func TestCopiesOfAnotherInterval(t *testing.T) {
	dir, progressive, lossy := copiedFolder(t)
	cache := t.TempDir()
	roots, data := listed(t, dir)
	none := 0
	for i, x := range []IndexOptions{{Interval: 8, CopyBytes: 1 << 30}, {Interval: 4}} {
		x.Dir = cache
		done, err := IndexSnapshot(t.Context(), roots, data, x, 1, nil)
		if err != nil || done.Copies != progressive+lossy || i > 0 && done.None != none {
			t.Errorf("every %d blocks: %+v, %v", x.Interval, done, err)
		}
		none = done.None
	}
}

// Pictures are counted by what they had: none in the first epoch, and then a copy, or another index where they can have one.
func TestIndexCounts(t *testing.T) {
	dir, progressive, lossy := copiedFolder(t)
	counts := new(IndexCounts)
	j := open(t, dir, skipPlan, Options{Index: &IndexOptions{Dir: t.TempDir(), CopyBytes: 1 << 30, Counts: counts}})
	epochs(t, j)
	pictures, copies, small := int64(j.Samples()), int64(progressive+lossy), int64(18)
	if counts.Copies() != copies || counts.Hits() != small || counts.Misses() != 2*pictures-copies-small {
		t.Errorf("of %d pictures in two epochs %d had copies, want %d, %d other indexes, want %d, and %d none", pictures, counts.Copies(), copies, counts.Hits(), small, counts.Misses())
	}
	again := 0
	for i := range int(pictures) {
		file, err := j.snapshot.Read(t.Context(), i, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, wanted := j.indexNow().Find(i, file, nil); wanted.any() {
			again++
		}
	}
	if refused := 2; again != refused {
		t.Errorf("%d pictures are looked at again, of which %d are refused", again, refused)
	}
	var nobody *IndexCounts
	if nobody.count(nil); nobody.Hits()+nobody.Copies()+nobody.Misses() != 0 {
		t.Error("nil counts")
	}
}

// Pictures that could have had a copy are counted with the bytes of their files, in all and of each batch: apart those that have it made, and not those that have one.
func TestMissingCopies(t *testing.T) {
	dir, progressive, lossy := copiedFolder(t)
	pictures, bytes, cache := int64(progressive+lossy), int64(0), t.TempDir()
	for _, pattern := range []string{"progressive*.jpg", "webp-*.webp"} {
		names, err := filepath.Glob(filepath.Join(dir, "*", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			bytes += info.Size()
		}
	}
	for _, c := range []struct {
		what   string
		copies int64 // room for them
		want   IndexUse
	}{
		{"first", 0, IndexUse{MissingCopies: pictures, MissingCopyBytes: bytes}},
		{"with other indexes", 0, IndexUse{Hits: 20, MissingCopies: pictures, MissingCopyBytes: bytes}},
		{"made on the way", 1 << 30, IndexUse{Hits: 20, MadeCopies: pictures}},
		{"with copies", 0, IndexUse{Hits: 18, Copies: pictures}},
	} {
		p, err := Open(Options{Index: &IndexOptions{Dir: cache, CopyBytes: c.copies, Counts: new(IndexCounts)}})
		if err != nil {
			t.Fatal(err)
		}
		j := prepare(t, p, dir, skipPlan)
		c.want.Misses = int64(j.Samples()) - c.want.Hits - c.want.Copies
		_, r := fetch(t, j, batch.Name{Count: int(j.Samples())})
		if all := p.indexes.index.Counts.Use(); r.Err != nil || r.Index != c.want || all != c.want {
			t.Errorf("%s: %+v of the batch, %+v in all, want %+v, %v", c.what, r.Index, all, c.want, r.Err)
		}
		p.Close()
	}
	j := open(t, dir, skipPlan, Options{}) // keeps no index
	if _, r := fetch(t, j, batch.Name{Count: int(j.Samples())}); r.Err != nil || r.Index != (IndexUse{}) {
		t.Errorf("without indexes: %+v, %v", r.Index, r.Err)
	}
}

// A share that is used up takes copies up to its end, loses none that were made, and leaves the other files their other index.
func TestCopiesUpToTheShare(t *testing.T) {
	dir, progressive, lossy := copiedFolder(t)
	roots, data := listed(t, dir)
	for share, last := int64(2000), 0; last < progressive+lossy; share += 8000 {
		cache := t.TempDir()
		done, err := IndexSnapshot(t.Context(), roots, data, IndexOptions{Dir: cache, CopyBytes: share}, 1, nil)
		if err != nil || done.Lost != 0 || done.Copies < last || done.CopiesFull != (done.Copies < progressive+lossy) {
			t.Fatalf("%d bytes: %+v, %v", share, done, err)
		}
		taken := int64(0)
		for _, name := range indexFiles(t, filepath.Join(cache, copiesFolder)) {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			taken += info.Size()
		}
		again, err := IndexSnapshot(t.Context(), roots, data, IndexOptions{Dir: cache}, 1, nil)
		if err != nil || again.Made != 0 || again.Copies != done.Copies || taken > share || taken == 0 != (done.Copies == 0) {
			t.Fatalf("%d bytes, of which %d are taken: %+v, then %+v, %v", share, taken, done, again, err)
		}
		last = done.Copies
	}
}

// A set of samples has those that were added, and no others.
func TestSamples(t *testing.T) {
	const count = 130
	s := newSamples(count)
	for i := range count {
		if i%3 == 0 || i%64 == 63 {
			s.add(i)
		}
	}
	for i := range count {
		if s.has(i) != (i%3 == 0 || i%64 == 63) {
			t.Errorf("sample %d is in it: %v", i, s.has(i))
		}
	}
}
