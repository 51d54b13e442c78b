//go:build linux

package main

import (
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// filer is a file system of this process, mounted in front of a folder, that answers some calls no more when it is told to. A process that waits
// for such a call cannot be ended, unless the filer is lenient, as NFS is: then a signal that ends the process ends the call.
type filer struct {
	folder  string // where it is mounted
	server  *fuse.Server
	lenient bool

	mu      sync.Mutex
	hung    map[string]bool // calls: look, open, read, readdir, write, fsync
	half    bool            // only calls on half of the names hang
	again   chan struct{}   // closed when it answers again
	waiting int
}

// mountFiler mounts a filer in front of a folder. It takes /dev/fuse and the right to mount.
func mountFiler(source, folder string) (*filer, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	f := &filer{folder: folder, lenient: true}
	root, err := fs.NewLoopbackRoot(source)
	if err != nil {
		return nil, err
	}
	loop, ok := root.(*fs.LoopbackNode)
	if !ok {
		return nil, fmt.Errorf("a %T is no root of a loop", root)
	}
	top := &filerNode{loop, f}
	f.server, err = fs.Mount(folder, top, &fs.Options{MountOptions: fuse.MountOptions{DirectMount: true, FsName: "filer"}})
	if err != nil {
		return nil, fmt.Errorf("mount %s: %w; it takes /dev/fuse and the right to mount", folder, err)
	}
	return f, nil
}

// hang has the filer answer these calls no more.
func (f *filer) hang(calls ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hung, f.again = map[string]bool{}, make(chan struct{})
	for _, c := range calls {
		f.hung[c] = true
	}
}

// spareHalf has calls on half of the names answered all the same.
func (f *filer) spareHalf() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.half = true
}

// answer has it answer again, what waits too.
func (f *filer) answer() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.again != nil {
		close(f.again)
	}
	f.hung, f.again = nil, nil
}

// await waits while a call on something of this name hangs.
func (f *filer) await(ctx context.Context, call, name string) syscall.Errno {
	f.mu.Lock()
	again, lenient := f.again, f.lenient
	if !f.hung[call] || f.half && crc32.ChecksumIEEE([]byte(name))%2 == 0 {
		f.mu.Unlock()
		return 0
	}
	f.waiting++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.waiting--
		f.mu.Unlock()
	}()
	interrupted := ctx.Done()
	if !lenient {
		interrupted = nil
	}
	select {
	case <-again:
		return 0
	case <-interrupted:
		return syscall.EINTR
	}
}

// stuck is how many calls wait.
func (f *filer) stuck() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting
}

// close has it answer, and unmounts it.
func (f *filer) close() {
	f.answer()
	if f.server.Unmount() != nil {
		_ = syscall.Unmount(f.folder, syscall.MNT_DETACH)
	}
	f.server.Wait()
}

// filerNode is a file or folder of a filer.
type filerNode struct {
	*fs.LoopbackNode
	filer *filer
}

// WrapChild implements fs.NodeWrapChilder.
func (n *filerNode) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	if loop, ok := child.(*fs.LoopbackNode); ok {
		return &filerNode{loop, n.filer}
	}
	return child
}

func (n *filerNode) name() string { return filepath.Base(n.Path(n.Root())) }

// Lookup implements fs.NodeLookuper: every call by a path begins with it.
func (n *filerNode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if e := n.filer.await(ctx, "look", name); e != 0 {
		return nil, e
	}
	return n.LoopbackNode.Lookup(ctx, name, out)
}

// Getattr implements fs.NodeGetattrer.
func (n *filerNode) Getattr(ctx context.Context, h fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	if e := n.filer.await(ctx, "look", n.name()); e != 0 {
		return e
	}
	return n.LoopbackNode.Getattr(ctx, h, out)
}

// Open implements fs.NodeOpener.
func (n *filerNode) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if e := n.filer.await(ctx, "open", n.name()); e != 0 {
		return nil, 0, e
	}
	h, more, e := n.LoopbackNode.Open(ctx, flags)
	if e != 0 {
		return nil, 0, e
	}
	return &filerFile{h, n.filer, n.name()}, more | fuse.FOPEN_DIRECT_IO, 0
}

// Create implements fs.NodeCreater.
func (n *filerNode) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	if e := n.filer.await(ctx, "write", name); e != 0 {
		return nil, nil, 0, e
	}
	inode, h, more, e := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	if e != 0 {
		return nil, nil, 0, e
	}
	return inode, &filerFile{h, n.filer, name}, more, 0
}

// OpendirHandle implements fs.NodeOpendirHandler.
func (n *filerNode) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if e := n.filer.await(ctx, "readdir", n.name()); e != 0 {
		return nil, 0, e
	}
	return n.LoopbackNode.OpendirHandle(ctx, flags)
}

// filerFile is an open file of a filer.
type filerFile struct {
	fs.FileHandle
	filer *filer
	name  string
}

// Read implements fs.FileReader.
func (h *filerFile) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if e := h.filer.await(ctx, "read", h.name); e != 0 {
		return nil, e
	}
	return h.FileHandle.(fs.FileReader).Read(ctx, dest, off) //nolint:forcetypeassert // a loopback file reads
}

// Write implements fs.FileWriter.
func (h *filerFile) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	if e := h.filer.await(ctx, "write", h.name); e != 0 {
		return 0, e
	}
	return h.FileHandle.(fs.FileWriter).Write(ctx, data, off) //nolint:forcetypeassert // a loopback file writes
}

// Flush implements fs.FileFlusher: it is what close(2) waits for.
func (h *filerFile) Flush(ctx context.Context) syscall.Errno {
	if e := h.filer.await(ctx, "fsync", h.name); e != 0 {
		return e
	}
	return h.FileHandle.(fs.FileFlusher).Flush(ctx) //nolint:forcetypeassert // a loopback file flushes
}

// Fsync implements fs.FileFsyncer.
func (h *filerFile) Fsync(ctx context.Context, flags uint32) syscall.Errno {
	if e := h.filer.await(ctx, "fsync", h.name); e != 0 {
		return e
	}
	return h.FileHandle.(fs.FileFsyncer).Fsync(ctx, flags) //nolint:forcetypeassert // a loopback file syncs
}

// Release implements fs.FileReleaser.
func (h *filerFile) Release(ctx context.Context) syscall.Errno {
	return h.FileHandle.(fs.FileReleaser).Release(ctx) //nolint:forcetypeassert // a loopback file is released
}
