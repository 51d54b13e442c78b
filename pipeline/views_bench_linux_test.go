package pipeline

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/order"
)

// BenchmarkViews: what one core does for the views of a photograph of FEEDWATER_PHOTOS, together and each by a plan of its own: the two of SimCLR, and DINO's two large
// and eight small ones, crops and flips alone. Contestants take turns of an epoch each; times are CPU times of the thread, medians of the rounds.
func BenchmarkViews(b *testing.B) {
	dir := os.Getenv("FEEDWATER_PHOTOS")
	if dir == "" {
		b.Skip("FEEDWATER_PHOTOS names no photographs")
	}
	level, err := kernel.Best()
	if err != nil {
		b.Fatal(err)
	}
	whole := `[{"op": "RandomResizedCrop", "size": 224}, {"op": "RandomHorizontalFlip"}]`
	large := `[{"op": "RandomResizedCrop", "size": 224, "scale": [0.4, 1], "interpolation": "bicubic"}, {"op": "RandomHorizontalFlip"}]`
	small := `[{"op": "RandomResizedCrop", "size": 96, "scale": [0.05, 0.4], "interpolation": "bicubic"}, {"op": "RandomHorizontalFlip"}]`
	dino := append([]string{large, large}, slices.Repeat([]string{small}, 8)...)
	for name, views := range map[string][]string{"simclr": {whole, whole}, "dino": dino} {
		b.Run(name, func(b *testing.B) { newIndexBench(b, dir, level).views(b, views) })
	}
}

func (n *indexBench) views(b *testing.B, views []string) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n.files = n.files[:min(len(n.files), 100)]
	together := []*Job{n.job(b, `{"seed": 17, "views": [`+strings.Join(views, ", ")+`]}`, nil)}
	var apart []*Job
	for _, v := range views {
		apart = append(apart, n.job(b, `{"seed": 17, "transforms": `+v+`}`, nil))
	}
	var shares, times []float64
	for e := uint32(0); b.Loop(); e++ {
		one, each := n.time(b, together, e), n.time(b, apart, e)
		times = append(times, float64(one.Microseconds())/float64(len(n.files)))
		shares = append(shares, float64(each)/float64(one))
	}
	slices.Sort(times)
	slices.Sort(shares)
	b.ReportMetric(times[len(times)/2], "µs/sample")
	b.ReportMetric(shares[len(shares)/2], "apart/together")
}

// time is what an epoch of jobs takes.
func (n *indexBench) time(b *testing.B, jobs []*Job, epoch uint32) time.Duration {
	decoders := make([]*decoder, len(jobs)) // as many runners would not be kept by one
	for i := range decoders {
		decoders[i] = newDecoder(n.decoder.level)
	}
	began := threadTime(b)
	for i, file := range n.files {
		for at, j := range jobs {
			d := decoders[at]
			k := &worker{p: j.p, file: file, want: &Want{job: j}}
			all, from, err := d.beginSample(j, order.Sample{Epoch: epoch, Index: uint32(i)}, nil, k)
			if err != nil {
				b.Fatal(err)
			}
			src, err := d.openSource(k, all, from)
			for k := 0; k < len(all) && err == nil; k++ {
				err = all[k].Run(src, n.pixels, 3*all[k].w)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	return threadTime(b) - began
}
