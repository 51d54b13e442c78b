package dataset

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// BenchmarkSnapshot measures a folder of FEEDWATER_SAMPLES pictures (default 20,000) in FEEDWATER_CLASSES classes (default
// 1000 at most). ImageNet's size takes about a minute:
//
//	FEEDWATER_SAMPLES=1281167 go test -run '^$' -bench Snapshot -benchtime 1x ./pipeline/dataset
func BenchmarkSnapshot(b *testing.B) {
	samples := number(b, "FEEDWATER_SAMPLES", 20_000)
	classes := number(b, "FEEDWATER_CLASSES", min(1000, samples))
	options := Options{CacheDir: b.TempDir(), now: later}
	root := linkedFolder(b, samples, classes)

	fresh := options
	fresh.Refresh = true
	once := func(b *testing.B, o Options) *Snapshot {
		s, err := Open(b.Context(), root, o)
		treetest.Must(b, err)
		treetest.Must(b, s.Close())
		return s
	}
	b.Run("op=scan", func(b *testing.B) {
		resetPeak(b)
		cpu := cpuSeconds(b)
		for b.Loop() {
			once(b, fresh)
		}
		b.ReportMetric((cpuSeconds(b)-cpu)/float64(b.N), "cpu-s/op")
		b.ReportMetric(memoryMiB(b, "VmHWM:"), "peak-MiB")
		b.ReportMetric(manifestBytes(b, options.CacheDir)/float64(samples), "manifest-B/sample")
	})
	b.Run("op=open", func(b *testing.B) {
		for b.Loop() {
			if !once(b, options).Cached() {
				b.Fatal("not from the cache")
			}
		}
	})
	s := open(b, root, options)
	const many = 10_000
	r := rand.New(rand.NewPCG(1, 1))
	b.Run("op=at", func(b *testing.B) {
		buf := make([]byte, 0, 4096)
		for b.Loop() {
			for range many {
				if _, err := s.At(r.IntN(samples), buf); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/many, "ns/sample")
	})
	b.Run("op=read", func(b *testing.B) {
		var buf []byte
		for b.Loop() {
			for range many {
				var err error
				if buf, err = s.Read(b.Context(), r.IntN(samples), buf); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/many, "ns/sample")
	})
}

func number(b *testing.B, variable string, other int) int {
	text := os.Getenv(variable)
	if text == "" {
		return other
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		b.Fatalf("%s=%s: want a number of 1 or more", variable, text)
	}
	return n
}

// linkedFolder makes a folder of hard links, each file linked at most 50,000 times: ext4 allows 65,000.
func linkedFolder(b *testing.B, samples, classes int) string {
	root, files := b.TempDir(), b.TempDir()
	const different = 1000
	for i := range different {
		treetest.Must(b, os.WriteFile(filepath.Join(files, strconv.Itoa(i)), make([]byte, 100_000+17*i), 0o600))
	}
	start := time.Now()
	r := rand.New(rand.NewPCG(1, 2))
	for c := range classes {
		class := fmt.Sprintf("n%08d", 1440764+c*13)
		treetest.Must(b, os.Mkdir(filepath.Join(root, class), 0o700))
		for i := c * samples / classes; i < (c+1)*samples/classes; i++ {
			name := fmt.Sprintf("%s_%d.JPEG", class, 1000*i+r.IntN(1000))
			treetest.Must(b, os.Link(filepath.Join(files, strconv.Itoa(i%different)), filepath.Join(root, class, name)))
		}
	}
	b.Logf("made %d links in %v", samples, time.Since(start).Round(time.Millisecond))
	return root
}

func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	treetest.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// resetPeak makes Linux count the highest resident memory anew.
func resetPeak(b *testing.B) { treetest.Must(b, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)) }

// memoryMiB is this process's memory of a kind, as proc(5) calls it: "VmHWM:" the most that was resident, "RssAnon:" what is of no file.
func memoryMiB(t testing.TB, kind string) float64 {
	status, err := os.ReadFile("/proc/self/status")
	treetest.Must(t, err)
	_, after, _ := strings.Cut(string(status), kind)
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	treetest.Must(t, err)
	return float64(kib) / 1024
}

func manifestBytes(b *testing.B, dir string) float64 {
	files, err := filepath.Glob(filepath.Join(dir, "*.manifest"))
	treetest.Must(b, err)
	fi, err := os.Stat(files[0])
	treetest.Must(b, err)
	return float64(fi.Size())
}
