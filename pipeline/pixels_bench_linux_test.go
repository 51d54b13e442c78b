package pipeline

import (
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixelcache"
)

// BenchmarkKept measures crops of the pictures that FEEDWATER_PHOTOS names, in turns: decoded ("decoded"), decoded for the first time and kept where
// that is done on the way ("keeping"), and out of kept pixels ("kept"). CPU time of a thread for a sample in µs, medians, and ratios of each round.
func BenchmarkKept(b *testing.B) {
	dir := os.Getenv("FEEDWATER_PHOTOS")
	if dir == "" {
		b.Skip("FEEDWATER_PHOTOS names no photographs")
	}
	level, err := kernel.Best()
	if err != nil {
		b.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n := newIndexBench(b, dir, level)
	j := n.job(b, cropPlan224, nil)
	options := &j.p.options
	j.p.credit.left = 1000 * time.Hour
	full := pixelcache.New(8 << 30)
	for i := range n.files { // whatever their format
		n.keep(b, j, full, i)
	}
	b.Logf("%+v", full.Counts())
	rounds := map[string][]float64{}
	for e := uint32(1); b.Loop(); e++ {
		times := map[string]time.Duration{}
		for name, c := range map[string]*pixelcache.Cache{"decoded": nil, "keeping": pixelcache.New(8 << 30), "kept": full} {
			options.Pixels = c
			began := threadTime(b)
			for i := range n.files {
				n.sample(b, j, e, i)
			}
			times[name] = threadTime(b) - began
			if c != full {
				c.Close()
			}
		}
		for name, t := range times {
			rounds[name] = append(rounds[name], float64(t.Microseconds())/float64(len(n.files)))
			if name != "decoded" {
				rounds["decoded/"+name] = append(rounds["decoded/"+name], float64(times["decoded"])/float64(t))
			}
		}
	}
	for name, values := range rounds {
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], name)
	}
}

// sample makes one sample, as a worker does that has read its file.
func (n *indexBench) sample(b *testing.B, j *Job, epoch uint32, i int) {
	d, k := n.decoder, &worker{p: j.p, file: n.files[i], want: &Want{job: j}}
	k.findPixels(j, batch.Ref{Index: uint64(i)})
	defer k.pixels.release()
	all, from, err := d.beginSample(j, order.Sample{Epoch: epoch, Index: uint32(i)}, nil, k)
	if err != nil {
		b.Fatal(err)
	}
	src, err := d.openSource(k, all, from)
	if err == nil {
		err = all[0].Run(src, n.pixels, 3*224)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// keep keeps the pixels of a file.
func (n *indexBench) keep(b *testing.B, j *Job, c *pixelcache.Cache, i int) {
	j.p.options.Pixels = c
	k := &worker{p: j.p, file: n.files[i], want: &Want{job: j}}
	k.findPixels(j, batch.Ref{Index: uint64(i)})
	k.pixels.format = n.decoder.codec.Format(k.file)
	if err := n.decoder.keepRead(k); err != nil || k.pixels.found == nil {
		b.Fatal(k.pixels.format, err)
	}
	k.pixels.release()
}
