// Package thumbnail keeps small pictures of a batch that a node sent, of those jobs alone that somebody looks at. It
// decides nothing about who may see them, starts no goroutine and has no clock: callers pass the time.
package thumbnail

import (
	"image"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Pictures is how many pictures a set has at most.
	Pictures = 8
	// Side is how wide and how high a picture is at most, in pixels.
	Side = 96
	// Every is the least time between two sets of a job.
	Every = 5 * time.Second
	// lookedFor is for how long a job is watched after somebody has looked.
	lookedFor = 15 * time.Second
	// MaxJobs bounds how many jobs are watched at once.
	MaxJobs = 4
)

// Key names a job.
type Key struct{ Job, Plan string }

// Set is some pictures of one batch.
type Set struct {
	Taken    time.Time
	Epoch    uint32
	Rank     uint32
	Pictures []*image.RGBA
	// Missing is why there are none.
	Missing string
	// Roots are those that the pictures were read from.
	Roots []string
}

// Keeper keeps the latest set of each job that is watched. The zero value is ready; its methods may be called from many
// goroutines at once.
type Keeper struct {
	watched atomic.Int32 // jobs
	mu      sync.Mutex
	jobs    map[Key]*entry
	open    map[Key]map[string]int // streams that read from a root
}

type entry struct {
	looked time.Time
	due    time.Time // of the next set
	set    *Set
}

// Open says that a stream of a job reads from these roots, until Close with the same.
func (k *Keeper) Open(job Key, roots []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open == nil {
		k.open = map[Key]map[string]int{}
	}
	if k.open[job] == nil {
		k.open[job] = map[string]int{}
	}
	for _, root := range roots {
		k.open[job][root]++
	}
}

// Close ends what one Open said.
func (k *Keeper) Close(job Key, roots []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	left := k.open[job]
	for _, root := range roots {
		if left[root]--; left[root] == 0 {
			delete(left, root)
		}
	}
	if len(left) == 0 {
		delete(k.open, job)
	}
}

// Roots are those that the open streams of a job read from; none: it has no stream.
func (k *Keeper) Roots(job Key) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.open[job]))
}

// Look returns the latest set of a job, nil while there is none, and has more of them kept for a while. full: too many
// other jobs are looked at.
func (k *Keeper) Look(job Key, now time.Time) (set *Set, full bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dropUnwatched(now)
	e := k.jobs[job]
	if e == nil {
		if len(k.jobs) >= MaxJobs {
			return nil, true
		}
		if k.jobs == nil {
			k.jobs = map[Key]*entry{}
		}
		e = &entry{}
		k.jobs[job] = e
		k.watched.Store(int32(len(k.jobs)))
	}
	e.looked = now
	return e.set, false
}

// Begin reports whether a set of a job is due, which the caller then gives to Put. While nobody looks it costs one read
// of memory.
func (k *Keeper) Begin(job Key, now time.Time) bool {
	if k.watched.Load() == 0 {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dropUnwatched(now)
	e := k.jobs[job]
	if e == nil || now.Before(e.due) {
		return false
	}
	e.due = now.Add(Every)
	return true
}

// Put keeps a set in place of the one before, unless nobody looks any more. It is not to be changed afterwards.
func (k *Keeper) Put(job Key, s *Set) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.jobs[job]; e != nil {
		e.set = s
	}
}

// dropUnwatched forgets jobs that nobody looks at any more. mu is held.
func (k *Keeper) dropUnwatched(now time.Time) {
	for job, e := range k.jobs {
		if now.Sub(e.looked) > lookedFor {
			delete(k.jobs, job)
		}
	}
	k.watched.Store(int32(len(k.jobs)))
}
