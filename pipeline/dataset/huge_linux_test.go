package dataset

import (
	"archive/tar"
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/feedwater-io/feedwater/pipeline/dataset/layout"
	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// What TestHugeList lists and TestHugeScan scans.
var (
	hugeList = flag.Int("huge-list", 1_000_000, "samples of TestHugeList")
	hugeScan = flag.Int("huge-scan", 20_000, "samples of TestHugeScan")
	hugeKeep = flag.String("huge-keep", "", "folder for the shards and the list of TestHugeList, which it leaves there")
)

// hugeInChild names the place that a child of these tests opens, below a folder that has the lists too.
const hugeInChild = "FEEDWATER_TEST_HUGE"

// perShard is how many samples a shard of TestHugeList has.
const perShard = 10_000

// shardsLayout finds samples in shards that have none: what a scan of real ones would find.
type shardsLayout struct{ samples int }

// Form implements layout.Layout.
func (l shardsLayout) Form() manifest.Form { return layout.Tar{}.Form() }

// Scan implements layout.Layout.
func (l shardsLayout) Scan(ctx context.Context, from store.Store, _ layout.Options, to *manifest.Builder) error {
	var s manifest.Sample
	for i := range l.samples {
		if i%perShard == 0 {
			name := shardName(i / perShard)
			a, err := from.Stat(ctx, name)
			if err != nil {
				return err
			}
			to.Watch(name, a)
			s.Object = to.Object(name, a)
		}
		s.Key = fmt.Appendf(s.Key[:0], "%s/%09d.jpg", shardName(i/perShard), i)
		s.Label, s.Size, s.Offset = int64(i*7919%1000), hugeSize(i), int64(i%perShard)*200_000+512
		if err := to.Sample(&s); err != nil {
			return err
		}
	}
	return nil
}

func shardName(i int) string { return fmt.Sprintf("train-%05d.tar", i) }

func hugeSize(i int) int64 { return 60_000 + int64(i)*7919%100_000 }

// hugeOptions are those of a data set whose lists lie below a folder.
func hugeOptions(dir string) Options {
	return Options{CacheDir: filepath.Join(dir, "lists"), CacheBytes: 1 << 40, now: later}
}

// TestHugeList: a list of so many samples has less than 25 bytes of each, and who opens it, in a process of its own, has little memory of its own.
// In full size:
//
//	go test ./pipeline/dataset -run Huge -v -timeout 1h -huge-list 100000000 -huge-scan 1281167 # make test-huge
func TestHugeList(t *testing.T) {
	if place := os.Getenv(hugeInChild); place != "" {
		openHuge(t, place)
		return
	}
	if testing.Short() {
		t.Skip("the race detector takes memory of its own")
	}
	dir := *hugeKeep
	if dir == "" {
		dir = t.TempDir()
	}
	shards := (*hugeList + perShard - 1) / perShard
	treetest.Must(t, os.MkdirAll(filepath.Join(dir, "shards"), 0o700))
	for i := range shards {
		f, err := os.Create(filepath.Join(dir, "shards", shardName(i)))
		treetest.Must(t, err)
		treetest.Must(t, f.Truncate(perShard*200_000))
		treetest.Must(t, f.Close())
	}
	place := filepath.Join(dir, "shards", fmt.Sprintf("train-{00000..%05d}.tar", shards-1))
	began := time.Now()
	path := writeHuge(t, place, hugeOptions(dir))
	fi, err := os.Stat(path)
	treetest.Must(t, err)
	perSample := float64(fi.Size()) / float64(*hugeList)
	t.Logf("a list of %d samples in %d shards, %.1f bytes each, is written in %v", *hugeList, shards, perSample, time.Since(began).Round(time.Millisecond))
	if perSample >= 25 {
		t.Errorf("%.1f bytes a sample", perSample)
	}
	dropPages(t, path)
	runInChild(t, "TestHugeList", place)
}

// writeHuge keeps the list of a place as Open would, and returns its path.
func writeHuge(t *testing.T, place string, o Options) string {
	o = o.withDefaults()
	s := opening{&Snapshot{}}
	defer func() { treetest.Must(t, s.Close()) }()
	treetest.Must(t, s.openSource(place, &o))
	s.cache = newCache(o, Join(s.path, s.part))
	list, err := s.cache.begin(t.Context())
	treetest.Must(t, err)
	_, err = s.scanTo(t.Context(), shardsLayout{*hugeList}, s.path, &o, list)
	treetest.Must(t, err)
	kept, err := list.commit()
	treetest.Must(t, err)
	kept.free()
	return filepath.Join(o.CacheDir, s.cache.name)
}

// openHuge opens a list and reads it at 1,000 places.
func openHuge(t *testing.T, place string) {
	dir := filepath.Dir(filepath.Dir(place))
	began := time.Now()
	s := open(t, place, hugeOptions(dir))
	opened := time.Since(began)
	if !s.Cached() || s.Len() != *hugeList {
		t.Fatalf("%d samples, cached %v", s.Len(), s.Cached())
	}
	r, buf := rand.New(rand.NewPCG(1, 1)), make([]byte, 0, 4096)
	began = time.Now()
	for range 1000 {
		i := r.IntN(s.Len())
		got, err := s.At(i, buf)
		treetest.Must(t, err)
		if got.Size != hugeSize(i) || got.Label != int64(i*7919%1000) || got.Object != i/perShard {
			t.Fatalf("sample %d is %+v", i, got)
		}
	}
	own := memoryMiB(t, "RssAnon:")
	t.Logf("opened in %v, cold; 1,000 places in %v; %.0f MiB of memory of its own", opened.Round(time.Microsecond), time.Since(began).Round(time.Microsecond), own)
	if own > 50 {
		t.Errorf("%.0f MiB", own)
	}
}

// TestHugeScan: tar files of so many samples are listed in little memory, in a process of its own.
func TestHugeScan(t *testing.T) {
	if place := os.Getenv(hugeInChild); place != "" {
		scanHuge(t, place)
		return
	}
	if testing.Short() {
		t.Skip("the race detector takes memory of its own")
	}
	const shards = 147
	dir := t.TempDir()
	treetest.Must(t, os.Mkdir(filepath.Join(dir, "shards"), 0o700))
	var group errgroup.Group
	group.SetLimit(4)
	for i := range shards {
		group.Go(func() error {
			return writeShard(filepath.Join(dir, "shards", shardName(i)), i**hugeScan/shards, (i+1)**hugeScan/shards)
		})
	}
	treetest.Must(t, group.Wait())
	runInChild(t, "TestHugeScan", filepath.Join(dir, "shards", fmt.Sprintf("train-{00000..%05d}.tar", shards-1)))
}

// writeShard writes a tar file of tiny pictures and labels.
func writeShard(path string, first, end int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	to := bufio.NewWriterSize(f, 1<<20)
	w := tar.NewWriter(to)
	for i := first; i < end; i++ {
		for ending, data := range map[string]string{"jpg": "a picture", "cls": strconv.Itoa(i % 1000)} {
			if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%09d.%s", i, ending), Mode: 0o600, Size: int64(len(data))}); err != nil {
				return err
			}
			if _, err := w.Write([]byte(data)); err != nil {
				return err
			}
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return to.Flush()
}

// scanHuge scans a place.
func scanHuge(t *testing.T, place string) {
	before, began := memoryMiB(t, "VmHWM:"), time.Now()
	s := open(t, place, hugeOptions(filepath.Dir(filepath.Dir(place))))
	peak := memoryMiB(t, "VmHWM:")
	t.Logf("%d samples are found in %v, with %.0f MiB of memory at most, of which %.0f were there before", s.Len(), time.Since(began).Round(time.Millisecond), peak, before)
	if s.Cached() || s.Len() != *hugeScan {
		t.Errorf("%d samples, cached %v", s.Len(), s.Cached())
	}
	if most := 40 + float64(s.Len())*177/(1<<20); peak > most { // of 1,281,167 it is 256 MiB
		t.Errorf("%.0f MiB of %.0f", peak, most)
	}
}

// runInChild runs one test in a process of its own, whose memory is its own.
func runInChild(t *testing.T, name, place string) {
	own, err := os.Executable()
	treetest.Must(t, err)
	child := exec.CommandContext(t.Context(), own, "-test.run", "^"+name+"$", "-test.v",
		"-huge-list", strconv.Itoa(*hugeList), "-huge-scan", strconv.Itoa(*hugeScan))
	child.Env = append(os.Environ(), hugeInChild+"="+place)
	said, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, said)
	}
	for line := range strings.Lines(string(said)) {
		if _, logged, found := strings.Cut(line, "_test.go:"); found {
			t.Log(strings.TrimSpace(logged))
		}
	}
}

// dropPages has a file's pages read from the disk when they are used next.
func dropPages(t *testing.T, path string) {
	f, err := os.Open(path)
	treetest.Must(t, err)
	defer f.Close()
	treetest.Must(t, unix.Fsync(int(f.Fd())))
	treetest.Must(t, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
}
