package dataset

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// scanLock is the right to scan a data set, which one in this process has at a time, and one of all processes that keep
// their lists in the same folder.
type scanLock struct {
	cache  *cache
	dir    string   // of file
	file   *os.File // locked; nil where no folder can be written
	report func(int)
	ended  sync.Once
}

// lookEvery is how often it is looked whether another process's scan has ended.
const lookEvery = 100 * time.Millisecond

// lockScan waits while others scan the data set, and tells o.Progress how far they are. It waits no longer for another
// process's scan that stands still.
func (c *cache) lockScan(ctx context.Context, o Options) (*scanLock, error) {
	alive := o.Alive // waiting for somebody else is no sign of storage that hangs
	if alive == nil {
		alive = func() {}
	}
	if err := inProcess.wait(ctx, c.name, alive); err != nil {
		return nil, err
	}
	l := &scanLock{cache: c, report: o.Progress}
	path := c.lockPath(ctx)
	if path == "" {
		return l, nil
	}
	l.dir = filepath.Dir(path)
	last := ""
	for still := time.Duration(0); ; still += lookEvery { // and not by the clock, which goes on while this process is suspended
		file, others := l.lock(ctx, path)
		if file != nil || !others {
			l.file = file
			return l, nil
		}
		if text := l.count(ctx, path); text != last {
			still, last = 0, text
			if n, err := strconv.Atoi(text); err == nil {
				o.Progress(n)
			}
		}
		if still > o.patience {
			return l, nil
		}
		select {
		case <-time.After(lookEvery):
			alive()
		case <-ctx.Done():
			l.end()
			return nil, ctx.Err()
		}
	}
}

// lockPath is the file that stands for the scan, in the first folder that can be written; "" if there is none.
func (c *cache) lockPath(ctx context.Context) string {
	name := strings.TrimSuffix(c.name, ending) + ".lock"
	if c.dir != "" {
		made := func() (bool, error) { return os.MkdirAll(c.dir, 0o700) == nil && writable(c.dir), nil }
		if ok, err := onFolder(ctx, c, c.dir, "make the folder of lists", made, nil); ok && err == nil {
			return filepath.Join(c.dir, name)
		}
	}
	if private, err := c.private(true); err == nil {
		return filepath.Join(private, name)
	}
	return ""
}

// lock is tryLock, without others where the folder does not answer.
func (l *scanLock) lock(ctx context.Context, path string) (_ *os.File, others bool) {
	type locked struct {
		file   *os.File
		others bool
	}
	try := func() (locked, error) {
		file, others := tryLock(path)
		return locked{file, others}, nil
	}
	got, _ := onFolder(ctx, l.cache, l.dir, "lock the list", try, func(other locked) { unlock(other.file) })
	return got.file, got.others
}

// count is what another process has told.
func (l *scanLock) count(ctx context.Context, path string) string {
	text, _ := onFolder(ctx, l.cache, l.dir, "look how far the list is", func() (string, error) { return readCount(path), nil }, nil)
	return text
}

// tell says how many samples the scan has found, to those who wait for it too.
func (l *scanLock) tell(samples int) {
	if f := l.file; f != nil {
		_, _ = onFolder(briefly(), l.cache, l.dir, "tell how far the list is", func() (int, error) { // for people
			return f.WriteAt([]byte(strconv.Itoa(samples)), 0)
		}, nil)
	}
	l.report(samples)
}

// unlock removes a locked file while it is locked, so that whoever locks it next sees that it is gone, and ends the
// lock. Nil is none.
func unlock(f *os.File) {
	if f != nil {
		_ = os.Remove(f.Name())
		_ = f.Close()
	}
}

// end lets the next one scan. Only the first call does something: the storage may keep the scan itself for longer than
// anybody waits for it.
func (l *scanLock) end() {
	l.ended.Do(func() {
		l.unlockList()
		inProcess.next(l.cache.name)
	})
}

// unlockList ends the lock, and waits no longer for that than CallFolder does. CallFolder may call more than once what
// it is given, and then the file of that name is somebody else's; where it calls nothing, since the folder is known to
// hang, the lock ends as soon as the folder answers.
func (l *scanLock) unlockList() {
	f := l.file
	if f == nil {
		return
	}
	once := sync.OnceFunc(func() { unlock(f) })
	_, err := onFolder(briefly(), l.cache, l.dir, "unlock the list", func() (struct{}, error) { once(); return struct{}{}, nil }, nil)
	if err != nil {
		go once() // nobody waits for it
	}
}

// readCount is what tell wrote.
func readCount(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	var text [20]byte
	n, _ := f.Read(text[:])
	return string(text[:n])
}

// scanQueues are who scans and who waits to in this process, by data set.
type scanQueues struct {
	mu  sync.Mutex
	all map[string]*scanQueue
}

// scanQueue is who scans one data set, or waits to.
type scanQueue struct {
	busy chan struct{} // holds an element while one scans
	all  int
}

var inProcess = scanQueues{all: map[string]*scanQueue{}}

// wait returns when the caller may scan, who calls next then. Meanwhile it calls alive, now and then.
func (s *scanQueues) wait(ctx context.Context, name string, alive func()) error {
	s.mu.Lock()
	q := s.all[name]
	if q == nil {
		q = &scanQueue{busy: make(chan struct{}, 1)}
		s.all[name] = q
	}
	q.all++
	s.mu.Unlock()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case q.busy <- struct{}{}:
			return nil
		case <-tick.C:
			alive()
		case <-ctx.Done():
			s.leave(name, q)
			return ctx.Err()
		}
	}
}

func (s *scanQueues) next(name string) {
	s.mu.Lock()
	q := s.all[name]
	s.mu.Unlock()
	<-q.busy
	s.leave(name, q)
}

// leave forgets the queue with the last one in it.
func (s *scanQueues) leave(name string, q *scanQueue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.all--; q.all == 0 {
		delete(s.all, name)
	}
}
