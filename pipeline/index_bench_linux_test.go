package pipeline

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/order"
)

// BenchmarkIndex: what one core does for a photograph of FEEDWATER_PHOTOS, from the file's bytes in memory to 224×224 pixels: without an index,
// with one, with one of every 4 blocks, in the first epoch, which makes it on the way, and the making alone. Contestants take turns of an epoch each;
// times are CPU times of the thread, medians of the rounds.
func BenchmarkIndex(b *testing.B) {
	dir := os.Getenv("FEEDWATER_PHOTOS")
	if dir == "" {
		b.Skip("FEEDWATER_PHOTOS names no photographs")
	}
	for _, level := range kernel.Levels() {
		b.Run("level="+level, func(b *testing.B) { newIndexBench(b, dir, level).run(b) })
	}
}

type indexBench struct {
	snapshot *dataset.Snapshot
	files    [][]byte
	decoder  *decoder
	pixels   []byte
}

func newIndexBench(b *testing.B, dir, level string) *indexBench {
	s, err := dataset.Open(b.Context(), dir, dataset.Options{CacheDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	n := &indexBench{snapshot: s, decoder: newDecoder(level), pixels: make([]byte, 224*224*3)}
	for i := range s.Len() {
		file, err := s.Read(b.Context(), i, nil)
		if err != nil {
			b.Fatal(err)
		}
		n.files = append(n.files, file)
	}
	return n
}

func (n *indexBench) run(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	plain, indexed, fine := n.job(b, cropPlan224, nil), n.job(b, cropPlan224, &IndexOptions{Dir: b.TempDir()}), n.job(b, cropPlan224, &IndexOptions{Dir: b.TempDir(), Interval: 4})
	for range 2 { // the second time all memory is there
		n.epoch(b, plain, 0)
		n.epoch(b, indexed, 0)
		n.epoch(b, fine, 0)
	}
	rounds := map[string][]float64{}
	for e := uint32(1); b.Loop(); e++ {
		first := n.job(b, cropPlan224, &IndexOptions{Dir: filepath.Join(b.TempDir(), strconv.Itoa(int(e)))})
		times := map[string]time.Duration{}
		for _, turn := range []struct {
			name string
			run  func()
		}{
			{"plain", func() { n.epoch(b, plain, e) }},
			{"indexed", func() { n.epoch(b, indexed, e) }},
			{"indexed4", func() { n.epoch(b, fine, e) }},
			{"first", func() { n.epoch(b, first, e) }},
			{"made", func() { n.make(b, plain) }},
		} {
			began := threadTime(b)
			turn.run()
			times[turn.name] = threadTime(b) - began
		}
		for name, t := range times {
			rounds[name] = append(rounds[name], float64(t.Microseconds())/float64(len(n.files)))
			if name != "plain" && name != "made" {
				rounds["plain/"+name] = append(rounds["plain/"+name], float64(times["plain"])/float64(t))
			}
		}
	}
	for name, values := range rounds {
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], name)
	}
}

// cropPlan224 is what epochs of BenchmarkIndex make.
const cropPlan224 = `{"seed": 17, "transforms": [{"op": "RandomResizedCrop", "size": 224}, {"op": "RandomHorizontalFlip"}]}`

// job is a plan, with an index or without, in a pipeline of its own.
func (n *indexBench) job(b *testing.B, plan string, index *IndexOptions) *Job {
	p, err := Open(Options{Workers: 1, Index: index})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Close)
	parsed, err := ParsePlan([]byte(plan))
	if err != nil {
		b.Fatal(err)
	}
	j, err := p.Prepare(parsed, n.snapshot)
	if err != nil {
		b.Fatal(err)
	}
	return j
}

// epoch makes all samples, as a worker does that has read their files.
func (n *indexBench) epoch(b *testing.B, j *Job, epoch uint32) {
	d := n.decoder
	for i, file := range n.files {
		k := &worker{file: file}
		if k.store = j.indexNow(); k.store != nil {
			k.found, k.making = k.store.Find(i, file, nil)
		}
		all, _, err := d.beginSample(j, order.Sample{Epoch: epoch, Index: uint32(i)}, nil, k)
		if err == nil {
			err = all[0].Run(d.codec, n.pixels, 3*224)
		}
		if err != nil {
			b.Fatal(err)
		}
		d.keepIndex(k.store, uint64(i), file)
	}
}

// make makes the index of all files and nothing else.
func (n *indexBench) make(b *testing.B, j *Job) {
	for _, file := range n.files {
		n.decoder.codec.UseIndex(nil, 8)
		if _, _, err := n.decoder.codec.Parse(file, j.plan.Limits); err != nil {
			b.Fatal(err)
		}
		n.decoder.made = n.decoder.codec.AppendIndex(n.decoder.made[:0])
	}
}

// threadTime is the CPU time of this thread.
func threadTime(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}
