//go:build !portable

package manifest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// hugeSample is sample i of a made-up data set of files: names like ImageNet's, times of files that were unpacked one
// after another.
func hugeSample(s *Sample, i int) {
	class := i / 1300
	key := s.Key[:0]
	key = append(key, 'n')
	key = strconv.AppendInt(key, int64(10_000_000+class*13), 10)
	key = append(append(key, '/'), key...)
	key = strconv.AppendInt(append(key, '_'), int64(i%1300*37), 10)
	key = append(key, ".JPEG"...)
	s.Key = key
	s.Size, s.ModifiedNanos = 60_000+int64(i*7919%100_000), int64(1_600_000_000_000_000_000+i*1_234_567)
}

// mapped is a file in memory, mapped as package dataset maps large ones.
func mapped(t testing.TB, path string) []byte {
	f, err := os.Open(path)
	treetest.Must(t, err)
	defer f.Close()
	fi, err := f.Stat()
	treetest.Must(t, err)
	data, err := unix.Mmap(int(f.Fd()), 0, int(fi.Size()), unix.PROT_READ, unix.MAP_SHARED)
	treetest.Must(t, err)
	t.Cleanup(func() { treetest.Must(t, unix.Munmap(data)) })
	treetest.Must(t, unix.Madvise(data, unix.MADV_RANDOM))
	return data
}

// TestHugeManifest opens a list of 1,000,000,000 samples, nothing of which is in memory, and reads it at 1,000 places. Its file is sparse: it has the
// pages and tables that are touched alone, so what else would be touched is found to be damaged.
func TestHugeManifest(t *testing.T) {
	const samples, slot = 1_000_000_000, 4096
	const pages = (samples + perPage - 1) / perPage
	begin := func(page int) uint64 { return uint64(len(magic)) + slot*uint64(page) }
	table := func(chunk int) uint64 { return begin(pages) + 8*pagesPerChunk*uint64(chunk) }
	f, err := os.Create(t.TempDir() + "/manifest")
	treetest.Must(t, err)
	defer f.Close()
	r := rand.New(rand.NewPCG(1, 1))
	places := []int{0, samples - 1}
	for len(places) < 1000 {
		places = append(places, r.IntN(samples))
	}
	var s Sample
	bytesOfPages := 0
	for _, i := range places {
		page, first := i/perPage, i/perPage*perPage
		var p pageBuilder
		for k := first; k < min(first+perPage, samples); k++ {
			hugeSample(&s, k)
			p.add(0, &s)
		}
		sealed := p.seal(uint64(page))
		bytesOfPages += len(sealed)
		_, err = f.WriteAt(sealed, int64(begin(page)))
		treetest.Must(t, err)
		_, err = f.WriteAt(appendNumbers(nil, begin(page)), int64(table(page/pagesPerChunk))+8*int64(page%pagesPerChunk))
		treetest.Must(t, err)
	}
	var tail bytes.Buffer
	b := NewBuilder(&tail, 0, "/root", 0)
	treetest.Must(t, b.out.Flush())
	tail.Reset()
	for chunk := range (pages + pagesPerChunk - 1) / pagesPerChunk {
		b.chunks = append(b.chunks, table(chunk))
	}
	b.Class("all", samples, [32]byte{})
	b.samples, b.written = samples, table(len(b.chunks))
	treetest.Must(t, b.Finish())
	_, err = f.WriteAt(append([]byte(magic), tail.Bytes()[:0]...), 0)
	treetest.Must(t, err)
	_, err = f.WriteAt(tail.Bytes(), int64(table(len(b.chunks))))
	treetest.Must(t, err)

	perSample := float64(bytesOfPages/len(places)+8) / perPage // and where the page begins
	t.Logf("without holes it has %.1f bytes a sample, %.0f GB", perSample, perSample*samples/1e9)
	if perSample >= 25 {
		t.Errorf("%.1f bytes a sample", perSample)
	}
	treetest.Must(t, f.Sync())
	treetest.Must(t, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
	data := mapped(t, f.Name())
	began := time.Now()
	m, err := Parse(data)
	treetest.Must(t, err)
	t.Logf("a file of %d samples is opened in %v", m.Samples(), time.Since(began))
	began = time.Now()
	defer func() { t.Logf("and read at %d places in %v", len(places), time.Since(began)) }()
	buf := make([]byte, 0, MaxKeyBytes)
	for _, i := range places {
		got, err := m.At(i, buf)
		treetest.Must(t, err)
		hugeSample(&s, i)
		if !bytes.Equal(got.Key, s.Key) || got.Size != s.Size || got.ModifiedNanos != s.ModifiedNanos || got.Label != 0 {
			t.Fatalf("sample %d is %+v", i, got)
		}
	}
	if _, err := m.At(perPage*(pages/2)+1, buf); err == nil {
		t.Error("a page that is not there was read")
	}
}

// TestBytesPerSample: a list takes less than 25 bytes a sample, and while it is made memory that does not grow with it.
func TestBytesPerSample(t *testing.T) {
	const samples = 400_000
	counted := &counter{}
	b := NewBuilder(counted, 0, "/root", 0)
	var s Sample
	var before, after runtime.MemStats
	add := func(from, to int) {
		for i := from; i < to; i++ {
			if i%1300 == 0 {
				b.Class(fmt.Sprint("n", 10_000_000+i/1300*13), 1300, [32]byte{})
				b.Watch(fmt.Sprint("n", 10_000_000+i/1300*13), store.Attributes{Modified: 1 << 60})
			}
			hugeSample(&s, i)
			treetest.Must(t, b.Sample(&s))
		}
	}
	add(0, samples/2)
	runtime.GC()
	runtime.ReadMemStats(&before)
	add(samples/2, samples)
	runtime.GC()
	runtime.ReadMemStats(&after)
	treetest.Must(t, b.Finish())
	if perSample := float64(counted.bytes) / samples; perSample >= 25 {
		t.Errorf("%.1f bytes a sample", perSample)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > samples/2 {
		t.Errorf("%d more samples take %d more bytes of memory", samples/2, grown)
	}
}

type counter struct{ bytes int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}

// BenchmarkManifest makes and opens a list of FEEDWATER_SAMPLES samples (default 1,000,000), warm and cold, and reads
// it in random order:
//
//	FEEDWATER_SAMPLES=100000000 go test -run '^$' -bench Manifest -benchtime 1x -timeout 1h ./pipeline/dataset/manifest
func BenchmarkManifest(b *testing.B) {
	samples, err := strconv.Atoi(os.Getenv("FEEDWATER_SAMPLES"))
	if err != nil {
		samples = 1_000_000
	}
	path := b.TempDir() + "/manifest"
	b.Run("op=make", func(b *testing.B) {
		for b.Loop() {
			makeHuge(b, path, samples)
		}
		fi, err := os.Stat(path)
		treetest.Must(b, err)
		b.ReportMetric(float64(fi.Size())/float64(samples), "B/sample")
	})
	for _, cold := range []bool{false, true} {
		b.Run(fmt.Sprint("op=open/cold=", cold), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				if cold {
					f, err := os.Open(path)
					treetest.Must(b, err)
					treetest.Must(b, unix.Fsync(int(f.Fd())))
					treetest.Must(b, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
					f.Close()
				}
				b.StartTimer()
				m, err := Parse(mapped(b, path))
				treetest.Must(b, err)
				_ = m.Classes()
			}
		})
	}
	m, err := Parse(mapped(b, path))
	treetest.Must(b, err)
	r := rand.New(rand.NewPCG(1, 1))
	b.Run("op=at", func(b *testing.B) {
		buf := make([]byte, 0, MaxKeyBytes)
		for b.Loop() {
			_, err := m.At(r.IntN(samples), buf)
			treetest.Must(b, err)
		}
	})
}

func makeHuge(b *testing.B, path string, samples int) {
	f, err := os.Create(path)
	treetest.Must(b, err)
	defer f.Close()
	to := NewBuilder(f, 0, "/data/train", 0)
	to.Watch("", store.Attributes{Modified: 1 << 60})
	var s Sample
	for i := range samples {
		if i%1300 == 0 {
			class := fmt.Sprint("n", 10_000_000+i/1300*13)
			digest := [32]byte{}
			binary.LittleEndian.PutUint64(digest[:], uint64(i))
			to.Class(class, min(1300, samples-i), digest)
			to.Watch(class, store.Attributes{Modified: 1 << 60})
		}
		hugeSample(&s, i)
		treetest.Must(b, to.Sample(&s))
	}
	treetest.Must(b, to.Finish())
}
