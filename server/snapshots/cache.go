package snapshots

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

// snapshotCache holds the snapshots in use, one per folder, and takes new ones: one scan at a time per folder, however
// many ask. Each scan runs in a goroutine of its own, ends when nobody waits for it any more, and is waited for by
// close.
type snapshotCache struct {
	scanner Scanner
	// idle is how long a snapshot that nobody uses is kept.
	idle   time.Duration
	onScan func(took time.Duration) // told of each scan that ended well

	mu      sync.Mutex
	closed  bool
	folders map[Folder]*cachedFolder
	running sync.WaitGroup
}

// cachedFolder is what is known of one folder. It is guarded by snapshotCache.mu.
type cachedFolder struct {
	Folder
	name    string    // that people know it by
	scan    *scan     // in progress, or about to begin
	current *Snapshot // the newest
	pause   time.Time // no scan begins before its end
	anew    bool      // the next scan takes no kept list
	relist  time.Time // until then the last scan that took none is new enough for all
	listed  time.Time // when that began
}

// scan is one call of Engine.Scan.
type scan struct {
	waiters int
	cancel  context.CancelFunc
	done    chan struct{} // closed when snapshot or err is set
	anew    bool          // it takes no kept list
	began   time.Time     // zero before it begins
	files   atomic.Int64  // found so far
	result  *Snapshot     // every waiter has a use of it
	err     error
}

// Snapshot is data with its users. It is guarded by snapshotCache.mu.
type Snapshot struct {
	Data
	cache  *snapshotCache
	folder *cachedFolder
	listed time.Time // when the newest scan began that found what is listed
	users  int
	timer  *time.Timer // runs while nobody uses it
}

// Between two scans of a folder lie as many times what the first one took, but longestPause at most, so that whoever
// opens it over and over costs a quarter of a core. All who come meanwhile share the second one: whoever changed the
// folder before has what it is now.
const (
	pauseFor     = 3
	longestPause = time.Second
	// longestRelist is likewise what lies between two scans that take no kept list, at most.
	longestRelist = time.Minute
)

func newSnapshotCache(s Scanner, idle time.Duration) *snapshotCache {
	return &snapshotCache{scanner: s, idle: idle, folders: map[Folder]*cachedFolder{}, onScan: func(time.Duration) {}}
}

// openFolder returns the snapshot of a folder, which people know by a name, as it is now; the caller releases it. A
// snapshot that has the fingerprint pinned is taken without looking at the folder again. With since set none is taken
// that was listed before, and if there is no other a scan lists the folder anew, for all who ask so meanwhile.
func (l *snapshotCache) openFolder(ctx context.Context, at Folder, name, pinned string, since time.Time) (*Snapshot, error) {
	for {
		s, f, n, err := l.joinScan(at, name, pinned, since)
		if s != nil || err != nil {
			return s, err
		}
		select {
		case <-n.done:
		case <-ctx.Done():
			l.abandonScan(f, n)
			return nil, ctx.Err()
		}
		if n.err != nil || since.IsZero() || n.anew { // one that began a little earlier serves all who ask while it runs
			return n.result, n.err
		}
		n.result.Release() // a kept list, as others asked; the next scan takes none
	}
}

// joinScan returns the snapshot of a folder if it need not be looked at, else a scan that the caller waits for.
func (l *snapshotCache) joinScan(at Folder, name, pinned string, since time.Time) (*Snapshot, *cachedFolder, *scan, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, nil, ErrClosed
	}
	f := l.folders[at]
	if f == nil {
		f = &cachedFolder{Folder: at, name: name}
		l.folders[at] = f
	}
	if s := f.current; s != nil && f.isGood(s, pinned, since) {
		return s.addUser(), f, nil, nil
	}
	if !since.IsZero() && (f.scan == nil || !f.scan.anew) {
		f.anew = true
	}
	if f.scan == nil {
		l.beginScan(f)
	}
	f.scan.waiters++
	return nil, f, f.scan, nil
}

// isGood reports whether a snapshot is taken without a look at the folder. snapshotCache.mu is held.
func (f *cachedFolder) isGood(s *Snapshot, pinned string, since time.Time) bool {
	if since.IsZero() {
		return s.Fingerprint() == pinned
	}
	now := time.Now()
	if now.Before(f.relist) && f.listed.Before(since) {
		since = f.listed
	}
	return !s.listed.Before(since) && !s.listed.After(now) // a clock that was set back says nothing
}

// findFingerprint returns an open snapshot by its fingerprint, of a folder that may be looked at; nil if there is none.
func (l *snapshotCache) findFingerprint(fingerprint string, may func(Folder) bool) *Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.folders {
		if f.current != nil && !l.closed && f.current.Fingerprint() == fingerprint && may(f.Folder) {
			return f.current.addUser()
		}
	}
	return nil
}

// beginScan starts a scan, when the pause behind the last one is over. mu is held.
func (l *snapshotCache) beginScan(f *cachedFolder) {
	ctx, cancel := context.WithCancel(context.Background())
	n := &scan{cancel: cancel, done: make(chan struct{}), anew: f.anew}
	f.scan, f.anew = n, false
	pause := time.Until(f.pause)
	l.running.Go(func() {
		defer cancel()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		began := l.noteBegin(n)
		data, err := l.scanner.Scan(ctx, f.Folder, n.anew, func(files int) { n.files.Store(int64(files)) })
		took := time.Since(began)
		if err == nil {
			l.onScan(took)
		}
		l.endScan(f, n, data, time.Now().Add(min(pauseFor*took, longestPause)), err)
	})
}

// noteBegin notes when a scan begins.
func (l *snapshotCache) noteBegin(n *scan) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	n.began = time.Now()
	return n.began
}

// endScan hands a scan's result to those who wait for it: the snapshot that is there, as long as it is the same.
func (l *snapshotCache) endScan(f *cachedFolder, n *scan, data Data, pause time.Time, err error) {
	var old *Snapshot
	if err == nil {
		old = l.useUnchanged(f, data)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(n.done)
	f.pause = pause
	listed := n.began
	if now := time.Now(); n.anew && err == nil {
		f.listed, f.relist = n.began, now.Add(min(pauseFor*now.Sub(n.began), longestRelist))
	} else if err == nil {
		listed = data.Listed()
	}
	if old != nil {
		defer old.removeUser()
	}
	switch n.err = err; {
	case err != nil:
	case old != nil && f.current == old: // nobody has invalidated it meanwhile
		_ = data.Close()
		old.users += n.waiters
		if listed.After(old.listed) {
			old.listed = listed
		}
		n.result = old
	default:
		n.result = &Snapshot{Data: data, cache: l, folder: f, listed: listed, users: n.waiters}
	}
	l.replaceCurrent(f, n)
}

// useUnchanged is the snapshot of a folder, with one more use, if it is the same as data that were scanned just now;
// else nil.
func (l *snapshotCache) useUnchanged(f *cachedFolder, data Data) *Snapshot {
	l.mu.Lock()
	s := f.current
	if s != nil {
		s.addUser()
	}
	l.mu.Unlock()
	if s != nil && !l.scanner.Same(s.Data, data) {
		s.Release()
		return nil
	}
	return s
}

// replaceCurrent makes a scan's result the folder's snapshot. mu is held.
func (l *snapshotCache) replaceCurrent(f *cachedFolder, n *scan) {
	old := f.current
	if f.scan != n { // all who waited have gone, and another may have begun
		if n.result != nil && n.result != old {
			n.result.closeUnused()
		}
		return
	}
	f.scan = nil
	f.current = n.result
	if old != nil && old != n.result && old.users == 0 {
		old.closeUnused()
	}
	l.forgetEmpty(f)
}

// abandonScan takes one waiter off a scan; the last one ends it.
func (l *snapshotCache) abandonScan(f *cachedFolder, n *scan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-n.done:
		if n.result != nil {
			n.result.removeUser()
		}
		return
	default:
	}
	if n.waiters--; n.waiters == 0 {
		n.cancel()
		f.scan = nil
		l.forgetEmpty(f)
	}
}

// forgetEmpty forgets a folder of which nothing is left. mu is held.
func (l *snapshotCache) forgetEmpty(f *cachedFolder) {
	if f.scan == nil && f.current == nil && l.folders[f.Folder] == f {
		delete(l.folders, f.Folder)
	}
}

// addUser counts one more user. snapshotCache.mu is held.
func (s *Snapshot) addUser() *Snapshot {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	s.users++
	return s
}

// Release ends a use.
func (s *Snapshot) Release() {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	s.removeUser()
}

func (s *Snapshot) removeUser() {
	switch s.users--; {
	case s.users > 0:
	case s.folder.current != s || s.cache.closed:
		s.closeUnused()
	default:
		s.keepIdle()
	}
}

// Invalidate says that the folder has changed: nobody gets this snapshot any more, those who use it keep it.
func (s *Snapshot) Invalidate() {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	if s.folder.current == s {
		s.folder.current = nil
		s.cache.forgetEmpty(s.folder)
	}
}

// keepIdle keeps a snapshot that nobody uses for a while: whoever opened a plan is about to fetch.
func (s *Snapshot) keepIdle() {
	var t *time.Timer
	t = time.AfterFunc(s.cache.idle, func() {
		s.cache.mu.Lock()
		defer s.cache.mu.Unlock()
		if s.timer != t { // it is in use again, or closed
			return
		}
		s.closeUnused()
	})
	s.timer = t
}

// closeUnused closes a snapshot that nobody uses. snapshotCache.mu is held.
func (s *Snapshot) closeUnused() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if s.folder.current == s {
		s.folder.current = nil
		s.cache.forgetEmpty(s.folder)
	}
	_ = s.Close() // read only: there is nothing to lose
}

// countFolders is the number of folders that have a snapshot.
func (l *snapshotCache) countFolders() int {
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

// countWaiting is the number of callers that wait for scans.
func (l *snapshotCache) countWaiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, f := range l.folders {
		if f.scan != nil {
			n += f.scan.waiters
		}
	}
	return n
}

// closeCache ends all scans, closes what nobody uses, and waits for the scans. What is in use is closed by its last
// release.
func (l *snapshotCache) closeCache() {
	l.mu.Lock()
	l.closed = true
	for _, f := range l.folders {
		if f.scan != nil {
			f.scan.cancel()
		}
		if s := f.current; s != nil && s.users == 0 {
			s.closeUnused()
		}
	}
	l.mu.Unlock()
	l.running.Wait()
}

// listScans are the scans that have begun, of folders that may be told of, in order of their names.
func (l *snapshotCache) listScans(now time.Time, may func(Folder) bool) []*pb.Scan {
	l.mu.Lock()
	defer l.mu.Unlock()
	var scans []*pb.Scan
	for _, f := range l.folders {
		if f.scan == nil || f.scan.began.IsZero() || !may(f.Folder) {
			continue
		}
		files, took := f.scan.files.Load(), now.Sub(f.scan.began)
		one := &pb.Scan{Folder: pulse.CleanName(f.name), Files: uint64(files), Running: durationpb.New(took)}
		if seconds := took.Seconds(); seconds > 0 {
			one.FilesPerSecond = float64(files) / seconds
		}
		scans = append(scans, one)
	}
	slices.SortFunc(scans, func(a, b *pb.Scan) int { return cmp.Compare(a.Folder, b.Folder) })
	return scans
}

// ErrClosed says that no more snapshots are opened.
var ErrClosed = errors.New("the node shuts down; ask another one")
