package membership

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	readEvery  = 2 * time.Second       // where nobody tells of changes, as on NFS
	settleTime = 50 * time.Millisecond // from a change to reading: writers are seldom done at once
	mostInFile = 1 << 20               // bytes
)

// file reads addresses, one or more in a line, from a file or from all files of a folder.
type file struct{ target, path string }

func newFile(target, path string) (*file, error) {
	if path == "" {
		return nil, &TargetError{target, "names no file; write file:path, of a file with an address in each line, or of a folder of such files"}
	}
	return &file{target, path}, nil
}

// String implements Source.
func (f *file) String() string { return f.target }

// Watch implements Source.
func (f *file) Watch(ctx context.Context, tell func(Answer)) {
	t := &changeNotifier{tell: tell}
	n := newChangeWatcher(f.path)
	defer n.close()
	for ctx.Err() == nil {
		t.notifyChange(f.readAddresses())
		n.wait(ctx)
	}
}

func (f *file) readAddresses() Answer {
	paths, err := f.listFiles()
	if err != nil {
		return Answer{Err: err}
	}
	all := make([]listing, len(paths))
	for i, p := range paths {
		all[i] = readListing(p)
	}
	a := Answer{Nodes: []string{}}
	for _, l := range dropStale(all) {
		a.Nodes = append(a.Nodes, l.nodes...)
		a.Err = errors.Join(a.Err, l.err)
	}
	if len(a.Nodes) == 0 && a.Err != nil {
		a.Nodes = nil
	}
	return a
}

// listFiles are the file itself, or those of the folder. Names that begin with a dot or end with ~ or .tmp are being
// written, or none of ours.
func (f *file) listFiles() ([]string, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{f.path}, nil
	}
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil, err
	}
	paths := []string{}
	for _, e := range entries {
		name := e.Name()
		if !e.IsDir() && !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, "~") && !strings.HasSuffix(name, ".tmp") {
			paths = append(paths, filepath.Join(f.path, name))
		}
	}
	return paths, nil
}

// readListing reads a file. What is no address is left out, and is the error.
func readListing(path string) listing {
	l := listing{path: path}
	f, err := os.Open(path)
	if err != nil {
		l.err = err
		return l
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		l.renewed = info.ModTime()
	}
	lines := bufio.NewScanner(io.LimitReader(f, mostInFile))
	for n := 1; lines.Scan(); n++ {
		l.announced = l.announced || n == 1 && isAnnouncement(lines.Text())
		text, _, _ := strings.Cut(lines.Text(), "#")
		for _, addr := range strings.FieldsFunc(text, isSeparator) {
			if err := CheckAddress(addr); err != nil {
				l.err = errors.Join(l.err, fmt.Errorf("%s line %d: %w", path, n, err))
				continue
			}
			l.nodes = append(l.nodes, addr)
		}
	}
	l.err = errors.Join(l.err, lines.Err())
	return l
}

func isSeparator(r rune) bool { return r == ' ' || r == '\t' || r == '\r' || r == ',' }

// changeWatcher tell of changes, sooner than reading again now and then finds them. The zero value tells of none.
type changeWatcher struct{ watcher *fsnotify.Watcher }

// newChangeWatcher watches the folder of a file: replacing a file, or a link to it, changes the folder alone.
func newChangeWatcher(path string) *changeWatcher {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return &changeWatcher{}
	}
	_ = w.Add(filepath.Dir(path)) // without, reading now and then does
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		_ = w.Add(path)
	}
	return &changeWatcher{w}
}

func (n *changeWatcher) close() {
	if n.watcher != nil {
		_ = n.watcher.Close()
	}
}

// wait returns when it is time to read again, or ctx ends.
func (n *changeWatcher) wait(ctx context.Context) {
	var events chan fsnotify.Event
	var errs chan error
	if n.watcher != nil {
		events, errs = n.watcher.Events, n.watcher.Errors
	}
	timer := time.NewTimer(addJitter(readEvery))
	defer timer.Stop()
	soon := sync.OnceFunc(func() { timer.Reset(settleTime) })
	for {
		select {
		case <-events:
			soon()
		case err := <-errs:
			if err != nil { // some changes were missed
				soon()
			}
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
