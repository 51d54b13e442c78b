package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/bytesize"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

// apart is a folder that this process writes into, which the flag and its variable name. Its links are followed once, when the first data set is opened,
// and are not where its storage does not answer.
func apart(flag, dir string) dataset.Apart {
	return dataset.Apart{What: fmt.Sprintf("the folder of --%s, or %s,", flag, variableOf(flag)), Folder: sync.OnceValue(func() string {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return dir
		}
		if real, ok := callBriefly(func() string { return withoutLinks(dir) }); ok {
			return real
		}
		return dir
	})}
}

// ownLimit is what may be taken in a folder that this process writes into.
type ownLimit struct {
	flag           string
	size, standard bytesize.Size
	dir            string
}

// roomWarnings say which limits that somebody gave are more than the file systems of their folders have. It is no error: file systems grow, and a limit
// is what may be taken at most. Storage that does not answer is not waited for.
func roomWarnings(limits ...ownLimit) (warnings []string) {
	for _, l := range limits {
		if l.size == l.standard {
			continue
		}
		if room, ok := callBriefly(func() fileSystem { return fileSystemOf(l.dir) }); ok && room.size > 0 && l.size > room.size {
			warnings = append(warnings, fmt.Sprintf("--%s, or %s, is %s, and the file system of %s has %s, of which %s are free: what finds no room there is not kept",
				l.flag, variableOf(l.flag), &l.size, l.dir, &room.size, &room.free))
		}
	}
	return warnings
}

// fileSystem is what a file system has, and what of that this process may still take.
type fileSystem struct{ size, free bytesize.Size }

// fileSystemOf is that of a folder, which need not be there yet; zero: it is not known.
func fileSystemOf(dir string) fileSystem {
	for at, _ := filepath.Abs(dir); ; at = filepath.Dir(at) {
		var st unix.Statfs_t
		switch err := unix.Statfs(at, &st); {
		case err == nil:
			return fileSystem{size: bytesize.Size(st.Blocks) * bytesize.Size(st.Bsize), free: bytesize.Size(st.Bavail) * bytesize.Size(st.Bsize)}
		case !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at):
			return fileSystem{}
		}
	}
}

// withoutLinks is an absolute path, of which some may not be there yet, without links.
func withoutLinks(path string) string {
	for at := path; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if err != nil && at != filepath.Dir(at) {
			continue
		}
		below, err := filepath.Rel(at, path)
		if err != nil {
			return path
		}
		return filepath.Join(real, below)
	}
}

// briefly is how long a folder of our own is waited for: what is asked of it is for better messages.
const briefly = time.Second

// callBriefly makes a call on storage, and reports whether it came back soon. One that did not is left to itself.
func callBriefly[T any](call func() T) (v T, ok bool) {
	done := make(chan T, 1)
	go func() { done <- call() }()
	select {
	case v = <-done:
		return v, true
	case <-time.After(briefly):
		return v, false
	}
}
