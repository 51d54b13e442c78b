package dataset

import (
	"context"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// BenchmarkSlowFolder scans FEEDWATER_SAMPLES pictures (default 20,000) in one folder of a storage that takes 1 ms for each operation, one
// after the other and as many at once as it takes with profit, in turns. One storage is a file system in user space, which needs /dev/fuse
// and the right to mount; the other is the local one behind a sleep:
//
//	go test -run '^$' -bench SlowFolder -benchtime 1x ./pipeline/dataset
func BenchmarkSlowFolder(b *testing.B) {
	samples := number(b, "FEEDWATER_SAMPLES", 20_000)
	b.Run("storage=fuse", func(b *testing.B) {
		root := b.TempDir()
		minute := time.Minute
		server, err := fs.Mount(root, &slowRoot{class: &slowFolder{files: samples}}, &fs.Options{
			AttrTimeout: &minute, MountOptions: fuse.MountOptions{DirectMount: true, DisableReadDirPlus: true},
		})
		if err != nil {
			b.Skipf("no file system can be mounted here: %v", err)
		}
		defer func() { must(b, server.Unmount()) }()
		compare(b, root, Options{})
	})
	b.Run("storage=sleep", func(b *testing.B) { compare(b, many(b, samples, samples), Options{slow: operation}) })
}

// compare scans a folder in both ways in turns.
func compare(b *testing.B, root string, o Options) {
	o.CacheDir, o.Refresh = b.TempDir(), true
	var took [2]time.Duration
	fingerprints := map[string]bool{}
	for b.Loop() {
		for i, stats := range []int{1, 0} {
			o.Stats = stats
			began := time.Now()
			s, err := Open(b.Context(), root, o)
			must(b, err)
			took[i] += time.Since(began)
			fingerprints[s.Fingerprint()] = true
			must(b, s.Close())
		}
	}
	if len(fingerprints) != 1 {
		b.Error("other lists")
	}
	b.ReportMetric(took[0].Seconds()/float64(b.N), "one-at-a-time-s")
	b.ReportMetric(took[1].Seconds()/float64(b.N), "together-s")
	b.ReportMetric(float64(took[0])/float64(took[1]), "times-as-fast")
}

// operation is how long the slow file system takes for anything.
func operation() { time.Sleep(time.Millisecond) }

// slowRoot holds one class.
type slowRoot struct {
	fs.Inode
	class *slowFolder
}

func (r *slowRoot) OnAdd(ctx context.Context) {
	r.AddChild("class", r.NewPersistentInode(ctx, r.class, fs.StableAttr{Mode: syscall.S_IFDIR}), true)
}

// slowFolder holds that many files, 0.jpg, 1.jpg and so on.
type slowFolder struct {
	fs.Inode
	files int
}

type slowFile struct{ fs.Inode }

func (f *slowFolder) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	operation()
	out.Attr = fuse.Attr{Mode: syscall.S_IFREG | 0o600, Size: uint64(1000 + len(name)), Mtime: 1}
	return f.NewInode(ctx, &slowFile{}, fs.StableAttr{Mode: syscall.S_IFREG}), 0
}

func (f *slowFolder) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	operation()
	return &slowStream{files: f.files}, 0
}

// slowStream takes its time for each buffer of entries.
type slowStream struct{ at, files int }

func (s *slowStream) HasNext() bool { return s.at < s.files }
func (s *slowStream) Close()        {}

func (s *slowStream) Next() (fuse.DirEntry, syscall.Errno) {
	const buffer = 100 // entries of 40 bytes in a page
	if s.at%buffer == 0 {
		operation()
	}
	s.at++
	return fuse.DirEntry{Name: strconv.Itoa(s.at) + ".jpg", Mode: syscall.S_IFREG}, 0
}
