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

// turn is the right to scan a data set, which one in this process has at a time, and one of all processes that keep their lists in the same folder.
type turn struct {
	cache  *cache
	dir    string   // of file
	file   *os.File // locked; nil where no folder can be written
	report func(int)
	ended  sync.Once
}

// lookEvery is how often it is looked whether another process's scan has ended.
const lookEvery = 100 * time.Millisecond

// waitForTurn waits while others scan the data set, and tells o.Progress how far they are. It waits no longer for another process's scan that
// stands still.
func (c *cache) waitForTurn(ctx context.Context, o Options) (*turn, error) {
	alive := o.Alive // waiting for somebody else is no sign of storage that hangs
	if alive == nil {
		alive = func() {}
	}
	if err := inProcess.wait(ctx, c.name, alive); err != nil {
		return nil, err
	}
	t := &turn{cache: c, report: o.Progress}
	path := c.lockPath(ctx)
	if path == "" {
		return t, nil
	}
	t.dir = filepath.Dir(path)
	last := ""
	for still := time.Duration(0); ; still += lookEvery { // and not by the clock, which goes on while this process is suspended
		file, others := t.lock(ctx, path)
		if file != nil || !others {
			t.file = file
			return t, nil
		}
		if text := t.count(ctx, path); text != last {
			still, last = 0, text
			if n, err := strconv.Atoi(text); err == nil {
				o.Progress(n)
			}
		}
		if still > o.patience {
			return t, nil
		}
		select {
		case <-time.After(lookEvery):
			alive()
		case <-ctx.Done():
			t.end()
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
func (t *turn) lock(ctx context.Context, path string) (_ *os.File, others bool) {
	type locked struct {
		file   *os.File
		others bool
	}
	try := func() (locked, error) {
		file, others := tryLock(path)
		return locked{file, others}, nil
	}
	l, _ := onFolder(ctx, t.cache, t.dir, "lock the list", try, func(l locked) { unlock(l.file) })
	return l.file, l.others
}

// count is what another process has told.
func (t *turn) count(ctx context.Context, path string) string {
	text, _ := onFolder(ctx, t.cache, t.dir, "look how far the list is", func() (string, error) { return readCount(path), nil }, nil)
	return text
}

// tell says how many samples the scan has found, to those who wait for it too.
func (t *turn) tell(samples int) {
	if f := t.file; f != nil {
		_, _ = onFolder(briefly(), t.cache, t.dir, "tell how far the list is", func() (int, error) { // for people
			return f.WriteAt([]byte(strconv.Itoa(samples)), 0)
		}, nil)
	}
	t.report(samples)
}

// unlock removes a locked file while it is locked, so that whoever locks it next sees that it is gone, and ends the lock. Nil is none.
func unlock(f *os.File) {
	if f != nil {
		_ = os.Remove(f.Name())
		_ = f.Close()
	}
}

// end lets the next one scan. Only the first call does something: the storage may keep the scan itself for longer than anybody waits for it.
func (t *turn) end() {
	t.ended.Do(func() {
		t.unlockList()
		inProcess.next(t.cache.name)
	})
}

// unlockList ends the lock, and waits no longer for that than CallFolder does. CallFolder may call more than once what it is given, and then the file
// of that name is somebody else's; where it calls nothing, since the folder is known to hang, the lock ends as soon as the folder answers.
func (t *turn) unlockList() {
	f := t.file
	if f == nil {
		return
	}
	once := sync.OnceFunc(func() { unlock(f) })
	_, err := onFolder(briefly(), t.cache, t.dir, "unlock the list", func() (struct{}, error) { once(); return struct{}{}, nil }, nil)
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

// turns are those of this process.
type turns struct {
	mu  sync.Mutex
	all map[string]*queue
}

// queue is who scans one data set, or waits to.
type queue struct {
	busy chan struct{} // holds an element while one scans
	all  int
}

var inProcess = turns{all: map[string]*queue{}}

// wait returns when it is the caller's turn, who calls next. Meanwhile it calls alive, now and then.
func (t *turns) wait(ctx context.Context, name string, alive func()) error {
	t.mu.Lock()
	q := t.all[name]
	if q == nil {
		q = &queue{busy: make(chan struct{}, 1)}
		t.all[name] = q
	}
	q.all++
	t.mu.Unlock()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case q.busy <- struct{}{}:
			return nil
		case <-tick.C:
			alive()
		case <-ctx.Done():
			t.leave(name, q)
			return ctx.Err()
		}
	}
}

func (t *turns) next(name string) {
	t.mu.Lock()
	q := t.all[name]
	t.mu.Unlock()
	<-q.busy
	t.leave(name, q)
}

// leave forgets the queue with the last one in it.
func (t *turns) leave(name string, q *queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.all--; q.all == 0 {
		delete(t.all, name)
	}
}
