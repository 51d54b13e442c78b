package main

import (
	"context"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// cores decides on how many cores an agent's goroutines run at once. Receiving is cheapest on one: frames go from goroutine to
// goroutine in its cache, and no other core is woken for each (docs/decisions/0006). One takes about 2 GB/s; an agent that keeps
// all it has busy gets one more, up to half of those of the machine. Pipelines of its own get them all.
type cores struct {
	all int

	mu   sync.Mutex
	now  int
	free bool // all are in use, by a pipeline or because GOMAXPROCS says so
}

// newCores begins with one core.
func newCores() *cores {
	c := &cores{all: runtime.GOMAXPROCS(0), now: 1, free: os.Getenv("GOMAXPROCS") != ""}
	if !c.free {
		runtime.GOMAXPROCS(1)
	}
	return c
}

// takeAll is for work that uses every core.
func (c *cores) takeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.free {
		c.free = true
		runtime.GOMAXPROCS(c.all)
	}
}

// adjustUntilDone adds cores as they are needed, until ctx ends.
func (c *cores) adjustUntilDone(ctx context.Context) {
	const often = time.Second
	tick := time.NewTicker(often)
	defer tick.Stop()
	at, used := time.Now(), cpuTime()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		t, u := time.Now(), cpuTime()
		c.addIfBusy(float64(u-used) / float64(t.Sub(at)))
		at, used = t, u
	}
}

// addIfBusy adds a core if all that there are were busy.
func (c *cores) addIfBusy(busy float64) {
	const nearly = 0.95
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.free && busy > nearly*float64(c.now) && c.now < c.all/2 {
		c.now++
		runtime.GOMAXPROCS(c.now)
	}
}

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
