package server

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// library holds the snapshots in use, one per folder, and takes new ones: one scan at a time per folder, however many ask. Each
// scan runs in a goroutine of its own, ends when nobody waits for it any more, and is waited for by close.
type library struct {
	engine Engine
	// idle is how long a snapshot that nobody uses is kept.
	idle  time.Duration
	scans func(took time.Duration) // told of each scan that ended well

	mu      sync.Mutex
	closed  bool
	folders map[Folder]*folder
	running sync.WaitGroup
}

// folder is what is known of one folder. It is guarded by library.mu.
type folder struct {
	Folder
	name    string    // that people know it by
	scan    *scan     // in progress, or about to begin
	current *snapshot // the newest
	pause   time.Time // no scan begins before its end
}

// scan is one call of Engine.Scan.
type scan struct {
	waiters int
	cancel  context.CancelFunc
	done    chan struct{} // closed when snapshot or err is set
	began   time.Time     // zero before it begins
	files   atomic.Int64  // found so far
	result  *snapshot     // every waiter has a use of it
	err     error
}

// snapshot is data with its users. It is guarded by library.mu.
type snapshot struct {
	Data
	library *library
	folder  *folder
	users   int
	timer   *time.Timer // runs while nobody uses it
}

// Between two scans of a folder lie as many times what the first one took, but longestPause at most, so that whoever opens it over and over costs
// a quarter of a core. All who come meanwhile share the second one: whoever changed the folder before has what it is now.
const (
	pauseFor     = 3
	longestPause = time.Second
)

func newLibrary(e Engine, idle time.Duration) *library {
	return &library{engine: e, idle: idle, folders: map[Folder]*folder{}, scans: func(time.Duration) {}}
}

// open returns the snapshot of a folder, which people know by a name, as it is now; the caller releases it. A snapshot that has the fingerprint
// pinned is taken without looking at the folder again.
func (l *library) open(ctx context.Context, at Folder, name, pinned string) (*snapshot, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, errDraining
	}
	f := l.folders[at]
	if f == nil {
		f = &folder{Folder: at, name: name}
		l.folders[at] = f
	}
	if s := f.current; s != nil && s.Fingerprint() == pinned {
		defer l.mu.Unlock()
		return s.use(), nil
	}
	if f.scan == nil {
		l.begin(f)
	}
	n := f.scan
	n.waiters++
	l.mu.Unlock()
	select {
	case <-n.done:
		return n.result, n.err
	case <-ctx.Done():
		l.abandon(f, n)
		return nil, ctx.Err()
	}
}

// find returns an open snapshot by its fingerprint, of a folder that may be looked at; nil if there is none.
func (l *library) find(fingerprint string, may func(Folder) bool) *snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.folders {
		if f.current != nil && !l.closed && f.current.Fingerprint() == fingerprint && may(f.Folder) {
			return f.current.use()
		}
	}
	return nil
}

// begin starts a scan, when the pause behind the last one is over. mu is held.
func (l *library) begin(f *folder) {
	ctx, cancel := context.WithCancel(context.Background())
	n := &scan{cancel: cancel, done: make(chan struct{})}
	f.scan = n
	pause := time.Until(f.pause)
	l.running.Go(func() {
		defer cancel()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		began := l.started(n)
		data, err := l.engine.Scan(ctx, f.Folder, func(files int) { n.files.Store(int64(files)) })
		took := time.Since(began)
		if err == nil {
			l.scans(took)
		}
		l.end(f, n, data, time.Now().Add(min(pauseFor*took, longestPause)), err)
	})
}

// started notes when a scan begins.
func (l *library) started(n *scan) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	n.began = time.Now()
	return n.began
}

// end hands a scan's result to those who wait for it: the snapshot that is there, as long as it is the same.
func (l *library) end(f *folder, n *scan, data Data, pause time.Time, err error) {
	var old *snapshot
	if err == nil {
		old = l.unchanged(f, data)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(n.done)
	f.pause = pause
	if old != nil {
		defer old.unuse()
	}
	switch n.err = err; {
	case err != nil:
	case old != nil && f.current == old: // nobody has spoiled it meanwhile
		_ = data.Close()
		old.users += n.waiters
		n.result = old
	default:
		n.result = &snapshot{Data: data, library: l, folder: f, users: n.waiters}
	}
	l.replace(f, n)
}

// unchanged is the snapshot of a folder, with one more use, if it is the same as data that were scanned just now; else nil.
func (l *library) unchanged(f *folder, data Data) *snapshot {
	l.mu.Lock()
	s := f.current
	if s != nil {
		s.use()
	}
	l.mu.Unlock()
	if s != nil && !l.engine.Same(s.Data, data) {
		s.release()
		return nil
	}
	return s
}

// replace makes a scan's result the folder's snapshot. mu is held.
func (l *library) replace(f *folder, n *scan) {
	old := f.current
	if f.scan != n { // all who waited have gone, and another may have begun
		if n.result != nil && n.result != old {
			n.result.shut()
		}
		return
	}
	f.scan = nil
	f.current = n.result
	if old != nil && old != n.result && old.users == 0 {
		old.shut()
	}
	l.tidy(f)
}

// abandon takes one waiter off a scan; the last one ends it.
func (l *library) abandon(f *folder, n *scan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-n.done:
		if n.result != nil {
			n.result.unuse()
		}
		return
	default:
	}
	if n.waiters--; n.waiters == 0 {
		n.cancel()
		f.scan = nil
		l.tidy(f)
	}
}

// tidy forgets a folder of which nothing is left. mu is held.
func (l *library) tidy(f *folder) {
	if f.scan == nil && f.current == nil && l.folders[f.Folder] == f {
		delete(l.folders, f.Folder)
	}
}

// use counts one more user. library.mu is held.
func (s *snapshot) use() *snapshot {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	s.users++
	return s
}

// release ends a use.
func (s *snapshot) release() {
	s.library.mu.Lock()
	defer s.library.mu.Unlock()
	s.unuse()
}

func (s *snapshot) unuse() {
	switch s.users--; {
	case s.users > 0:
	case s.folder.current != s || s.library.closed:
		s.shut()
	default:
		s.rest()
	}
}

// spoil says that the folder has changed: nobody gets this snapshot any more, those who use it keep it.
func (s *snapshot) spoil() {
	s.library.mu.Lock()
	defer s.library.mu.Unlock()
	if s.folder.current == s {
		s.folder.current = nil
		s.library.tidy(s.folder)
	}
}

// rest keeps a snapshot that nobody uses for a while: whoever opened a plan is about to fetch.
func (s *snapshot) rest() {
	var t *time.Timer
	t = time.AfterFunc(s.library.idle, func() {
		s.library.mu.Lock()
		defer s.library.mu.Unlock()
		if s.timer != t { // it is in use again, or closed
			return
		}
		s.shut()
	})
	s.timer = t
}

// shut closes a snapshot that nobody uses. library.mu is held.
func (s *snapshot) shut() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if s.folder.current == s {
		s.folder.current = nil
		s.library.tidy(s.folder)
	}
	_ = s.Close() // read only: there is nothing to lose
}

// count is the number of folders that have a snapshot.
func (l *library) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, f := range l.folders {
		if f.current != nil {
			n++
		}
	}
	return n
}

// close ends all scans, closes what nobody uses, and waits for the scans. What is in use is closed by its last release.
func (l *library) close() {
	l.mu.Lock()
	l.closed = true
	for _, f := range l.folders {
		if f.scan != nil {
			f.scan.cancel()
		}
		if s := f.current; s != nil && s.users == 0 {
			s.shut()
		}
	}
	l.mu.Unlock()
	l.running.Wait()
}

// errDraining says that a node takes no more work.
var errDraining = errors.New("the node shuts down; ask another one")
