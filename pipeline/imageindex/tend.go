package imageindex

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	ending     = ".index"
	unfinished = ".tmp"
)

// tendFiles writes what was gathered, and looks for the files of others, in a goroutine unless one is at it. mu is
// held.
func (s *Cache) tendFiles() {
	if s.tending || s.closed {
		return
	}
	s.tending, s.looked = true, time.Now()
	s.running.Go(func() {
		s.touchUsed()
		s.lookForFiles()
		s.flushPending()
		s.measureRoom()
		s.tellFull()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tending = false
		switch {
		case s.leaving:
			s.freeSegments()
		case s.isGathered() || s.full && !s.toldFull: // meanwhile
			s.tendFiles()
		}
	})
}

// tendIfDue tends if the record at this place was gathered long ago, or there is none and the last look for those of
// others was long ago, or it is one whose file was not said to be in use for long.
func (s *Cache) tendIfDue(at place) {
	s.mu.RLock()
	due := at == 0 && time.Since(s.looked) > lookAge ||
		s.byContent && at > nothing && time.Since(s.looked) > touchAge ||
		at != 0 && s.pending != nil && s.pending.segment == at.segment() && time.Since(s.pending.begun) > flushAge
	s.mu.RUnlock()
	if due {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tendFiles()
	}
}

// touchUsed says of the files of a Cache by content which were in use since they were said to be, ten minutes ago or more: the
// others make room once they were not for long.
func (s *Cache) touchUsed() {
	if !s.byContent {
		return
	}
	s.mu.RLock()
	all := slices.Clone(s.segments)
	s.mu.RUnlock()
	now := time.Now()
	for _, g := range all {
		if g.memory == nil || now.Sub(g.memory.touched) < touchAge || !g.memory.used.Swap(false) {
			continue
		}
		g.memory.touched = now
		s.touchFile(g.name, now)
	}
}

// touchFile says that a file is in use. Where that cannot be said it is not.
func (s *Cache) touchFile(name string, now time.Time) {
	_ = os.Chtimes(filepath.Join(s.options.Dir, name), now, now)
}

// lookForFiles loads the files of this Cache that it does not know, and removes those that nobody needs. Later names
// are later files.
func (s *Cache) lookForFiles() {
	entries, err := os.ReadDir(s.options.Dir)
	if err != nil {
		return // there is none yet, or never will be
	}
	present, news := map[string]fs.DirEntry{}, false
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, s.filePrefix()) || !strings.HasSuffix(name, ending) || !e.Type().IsRegular() {
			continue
		}
		present[name] = e
		if !s.known[name] && s.countSegments() < maxSegments {
			s.noteName(name)
			s.takeFile(name)
			news = true
		}
	}
	if news || s.isClosed() { // else the files are those of which each was needed, and later ones
		s.dropSegments(present)
	}
	s.countDisk(present)
}

// noteName notes that a file is known, and when it was written: what this Cache writes is later, whatever the clock says.
func (s *Cache) noteName(name string) {
	s.known[name] = true
	at, _, _ := strings.Cut(strings.TrimPrefix(name, s.filePrefix()), "-")
	if written, err := strconv.ParseInt(at, 16, 64); err == nil && written < math.MaxInt64/2 {
		s.latest = max(s.latest, written)
	}
}

// takeFile loads a file, and says that it is in use if it is one data set's; a damaged one goes.
func (s *Cache) takeFile(name string) {
	path := filepath.Join(s.options.Dir, name)
	switch err := s.loadFile(path); {
	case err == nil && !s.byContent:
		s.touchFile(name, time.Now())
	case errors.Is(err, errDamaged):
		_ = os.Remove(path) // where that is not allowed somebody else will
	}
}

// flushPending writes what was gathered. What cannot be written stays in memory, and nothing more is gathered; of a Cache
// by content what finds no room is forgotten.
func (s *Cache) flushPending() {
	s.mu.Lock()
	p := s.pending
	s.pending = nil
	s.taken.Broadcast()
	stopped := s.stopped
	s.mu.Unlock()
	if p == nil || stopped {
		return
	}
	if p = s.trimPending(p); len(p.entries) == 0 {
		return
	}
	path, err := s.writePending(p)
	if err != nil {
		s.stopKeeping(err)
		return
	}
	s.noteWritten(p)
	m, err := mapPath(path)
	if err != nil {
		return // it stays in memory
	}
	head := headBytes + len(p.entries) + checksumBytes
	if len(m.data) != head+len(p.records) { // somebody cut it short
		m.release()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.segments[p.segment] = segment{filepath.Base(path), m, m.data[head:]}
	s.reportHeld(-int64(s.options.pendingBytes))
}

// noteWritten notes that a file has what was gathered.
func (s *Cache) noteWritten(p *pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLost(len(p.entries)/entryBytes, len(p.records))
}

// stopKeeping keeps nothing from now on.
func (s *Cache) stopKeeping(err error) {
	s.mu.Lock()
	again := s.stopped
	s.stopped = true
	s.mu.Unlock()
	if !again {
		s.tellTrouble(err)
	}
}

// tellFull tells, once, that no more is taken.
func (s *Cache) tellFull() {
	s.mu.Lock()
	tell := s.full && !s.toldFull && !s.stopped
	s.toldFull = s.toldFull || s.full
	s.mu.Unlock()
	if tell {
		s.tellTrouble(fmt.Errorf("%w, %d", ErrFull, s.options.MaxBytes))
	}
}

func (s *Cache) tellTrouble(err error) {
	s.options.Trouble(fmt.Errorf("keep the index in %s: %w", s.options.Dir, err))
}

// writePending makes a file of what was gathered: under another name first, so that a file with its name is whole.
func (s *Cache) writePending(p *pending) (path string, err error) {
	if err := os.MkdirAll(s.options.Dir, 0o700); err != nil {
		return "", err
	}
	head := p.headOf(s.key)
	if err := s.makeRoom(int64(len(head) + len(p.records))); err != nil {
		return "", err
	}
	f, err := s.options.create(filepath.Join(s.options.Dir, fmt.Sprintf("%s%016x-*%s", s.filePrefix(), max(time.Now().UnixNano(), s.latest+1), unfinished)))
	if err != nil {
		return "", err
	}
	_, err = f.Write(head)
	if err == nil {
		_, err = f.Write(p.records)
	}
	err = errors.Join(err, f.Close())
	path = strings.TrimSuffix(f.Name(), unfinished) + ending
	if err == nil {
		s.noteName(filepath.Base(path))
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return path, err
}

// writer is a file that is being written.
type writer interface {
	io.WriteCloser
	Name() string
}

func createTemp(pattern string) (writer, error) {
	return os.CreateTemp(filepath.Dir(pattern), filepath.Base(pattern))
}

// makeRoom sees to it that n more bytes are within the limit.
func (s *Cache) makeRoom(n int64) error {
	files, err := s.listFiles()
	if err != nil {
		return err
	}
	total := n
	for _, f := range files {
		total += f.Size()
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, f := range files {
		if total <= s.options.MaxBytes {
			return nil
		}
		if s.makesRoom(f) && os.Remove(filepath.Join(s.options.Dir, f.Name())) == nil {
			s.leaveFile(f.Name())
			total -= f.Size()
		}
	}
	if total > s.options.MaxBytes {
		return fmt.Errorf("%w, %d", ErrFull, s.options.MaxBytes)
	}
	return nil
}

// makesRoom reports whether a file is one that may be removed for others.
func (s *Cache) makesRoom(f fs.FileInfo) bool {
	if s.byContent {
		return time.Since(f.ModTime()) > staleAge
	}
	return !strings.HasPrefix(f.Name(), s.filePrefix())
}

// measureRoom finds out what a Cache by content may still gather. One that was full takes records again once there is room
// for the one that it did not take.
func (s *Cache) measureRoom() {
	if !s.byContent || s.options.ReadOnly {
		return
	}
	room := s.findRoom()
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pending; p != nil {
		room -= int64(headBytes + len(p.entries) + checksumBytes + len(p.records))
	}
	s.room, s.full = room, s.full && room < s.lacking
}

// findRoom is how many bytes may be added to the files of a Cache by content that make no room.
func (s *Cache) findRoom() int64 {
	room := s.options.MaxBytes
	files, _ := s.listFiles() // writing will say what is wrong with the folder
	for _, f := range files {
		if !s.makesRoom(f) {
			room -= f.Size()
		}
	}
	return room
}

// ours matches the names that Caches give, of any format. The folder may have files of others, whatever they end with.
var ours = regexp.MustCompile(`^[0-9a-f]{32}(\.[0-9]+)?-[0-9a-f]{16}-[0-9]+(` + regexp.QuoteMeta(ending) + `|` + regexp.QuoteMeta(unfinished) + `)$`)

// listFiles lists all files that count, and removes what killed processes left behind.
func (s *Cache) listFiles() (files []fs.FileInfo, err error) {
	entries, err := os.ReadDir(s.options.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil || !info.Mode().IsRegular() || !ours.MatchString(e.Name()): // it is gone, or somebody else's
		case strings.HasSuffix(e.Name(), ending):
			files = append(files, info)
		case strings.HasSuffix(e.Name(), unfinished) && time.Since(info.ModTime()) > time.Hour:
			_ = os.Remove(filepath.Join(s.options.Dir, e.Name()))
		}
	}
	return files, nil
}
