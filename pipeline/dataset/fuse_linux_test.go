package dataset

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
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
		compare(b, root, Options{}, func() (end func()) { return mountSlow(b, root, samples) })
	})
	b.Run("storage=sleep", func(b *testing.B) {
		compare(b, many(b, samples, samples), Options{slow: operation}, func() (end func()) { return func() {} })
	})
}

// slowEnv has a process of the tests serve a slow file system of so many files at a folder, "FILES FOLDER", until its standard input ends.
const slowEnv = "FEEDWATER_TEST_SLOW"

// mountSlow has another process serve a slow file system: in this one it would share Go's scheduler with the scan that is measured.
func mountSlow(b *testing.B, folder string, files int) (unmount func()) {
	b.Helper()
	program, err := os.Executable()
	treetest.Must(b, err)
	server := exec.Command(program)
	server.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", slowEnv, files, folder), "GOMAXPROCS=16")
	server.Stderr = os.Stderr
	stdin, err := server.StdinPipe()
	treetest.Must(b, err)
	stdout, err := server.StdoutPipe()
	treetest.Must(b, err)
	treetest.Must(b, server.Start())
	if said, err := bufio.NewReader(stdout).ReadString('\n'); said != "mounted\n" {
		b.Fatalf("no file system can be mounted here: %q, %v", said, err)
	}
	return func() {
		treetest.Must(b, stdin.Close())
		treetest.Must(b, server.Wait())
	}
}

// serveSlow is the process of mountSlow, if this is one.
func serveSlow() {
	var files int
	var folder string
	if n, _ := fmt.Sscanf(os.Getenv(slowEnv), "%d %s", &files, &folder); n != 2 {
		return
	}
	minute := time.Minute
	server, err := fs.Mount(folder, &slowRoot{class: &slowFolder{files: files}}, &fs.Options{
		AttrTimeout: &minute, MountOptions: fuse.MountOptions{DirectMount: true, DisableReadDirPlus: true},
	})
	if err == nil {
		fmt.Println("mounted")
		_, _ = io.Copy(io.Discard, os.Stdin)
		err = server.Unmount()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// compare scans a folder in both ways in turns, each as it is when the kernel knows none of its files: begin has it so.
func compare(b *testing.B, root string, o Options, begin func() (end func())) {
	o.CacheDir, o.Refresh = b.TempDir(), true
	var took [2]time.Duration
	fingerprints := map[string]bool{}
	for b.Loop() {
		for i, stats := range []int{1, 0} {
			o.Stats = stats
			end := begin()
			began := time.Now()
			s, err := Open(b.Context(), root, o)
			treetest.Must(b, err)
			took[i] += time.Since(began)
			fingerprints[s.Fingerprint()] = true
			treetest.Must(b, s.Close())
			end()
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
