package readcache

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestDiskThatHangs: reads and writes of a disk that does not answer are given up, all those of later are not tried, one line
// tells, and what is there is read when it answers again.
func TestDiskThatHangs(t *testing.T) {
	for name, call := range map[string]func(*Cache) bool{
		"read":   func(c *Cache) bool { return has(t, c, 1) },
		"write":  func(c *Cache) bool { c.Write(key(2), data(2)); return false },
		"counts": func(c *Cache) bool { return c.Counts().Used != 1044 },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				var told []string
				c, err := Open(dir, 1<<20, func(err error) { told = append(told, err.Error()) })
				must(t, err)
				c.Write(key(1), data(1))
				var calls atomic.Int32
				answers := make(chan struct{})
				c.disk.slow = func() { calls.Add(1); <-answers }
				for range 3 {
					if call(c) {
						t.Error("it has something of a disk that hangs")
					}
				}
				if calls.Load() != 1 || len(told) != 1 || !strings.Contains(told[0], "has not answered for 1s") {
					t.Errorf("%d calls, told %q", calls.Load(), told)
				}
				must(t, c.Close()) // and is left open
				close(answers)
				synctest.Wait()
				if !has(t, c, 1) {
					t.Error("it answers again, and the block is not there")
				}
				must(t, c.Close())
			})
		})
	}
}

// TestCallsOnADiskAreBounded: there are no more than so many at once, however many are wanted.
func TestCallsOnADiskAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		d := disk{patience: patience, places: make(chan struct{}, 2), gaveUp: func() {}, slow: func() { <-answers }}
		results := make(chan bool, 3)
		for range 3 {
			go func() { results <- d.run(func() {}) }()
		}
		synctest.Wait()
		if len(results) != 1 || <-results {
			t.Error("the third call was not refused")
		}
		close(answers)
		for range 2 {
			if !<-results {
				t.Error("a call that the disk answers has failed")
			}
		}
		if !d.run(func() {}) {
			t.Error("a call after those has failed")
		}
	})
}
