package pipeline

import (
	"os"
	"runtime"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// BenchmarkUnit is what BenchmarkIndex measures, each way by itself, for profiles of one.
func BenchmarkUnit(b *testing.B) {
	dir := os.Getenv("FEEDWATER_PHOTOS")
	if dir == "" {
		b.Skip("FEEDWATER_PHOTOS names no photographs")
	}
	for name, index := range map[string]*IndexOptions{"plain": nil, "indexed": {Dir: b.TempDir(), CopyBytes: 1 << 40}} {
		b.Run(name, func(b *testing.B) { benchUnit(b, dir, index) })
	}
}

func benchUnit(b *testing.B, dir string, index *IndexOptions) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	level, err := kernel.Best()
	if err != nil {
		b.Fatal(err)
	}
	n := newIndexBench(b, dir, level)
	j := n.job(b, cropPlan224, index)
	for range 2 { // the second time all memory is there
		n.epoch(b, j, 0)
	}
	b.ReportAllocs()
	began := threadTime(b)
	for e := uint32(1); b.Loop(); e++ {
		n.epoch(b, j, e)
	}
	b.ReportMetric(float64((threadTime(b)-began).Microseconds())/float64(b.N*len(n.files)), "µs/sample")
}
