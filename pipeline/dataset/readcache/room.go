package readcache

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// makeRoom begins to remove those blocks that were not used for longest, unless that is going on.
func (c *Cache) makeRoom() {
	if !c.sweeping.TryLock() {
		return
	}
	c.running.Go(func() {
		defer c.sweeping.Unlock()
		mine := lockRoom(filepath.Join(c.dir, "room"))
		if mine == nil {
			return
		}
		defer mine.Close() //nolint:errcheck // it has nothing
		before, err := c.count(0)
		if err != nil {
			return
		}
		_, _ = c.count(c.removeOldest() - before) // else it is counted when room is made the next time
	})
}

// Names of folders, and of blocks in them. Other files are not ours.
var (
	isFolder = regexp.MustCompile(`^[0-9a-f]{2}$`)
	isBlock  = regexp.MustCompile(`^[0-9a-f]{62}\` + ending + `$`)
)

// each tells of the blocks that there are, and removes what killed processes have left behind.
func (c *Cache) each(tell func(path string, fi fs.FileInfo)) {
	folders, _ := os.ReadDir(c.dir) // one that cannot be read has no blocks
	for _, folder := range folders {
		if !isFolder.MatchString(folder.Name()) {
			continue
		}
		dir := filepath.Join(c.dir, folder.Name())
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			fi, err := e.Info()
			if err != nil || !fi.Mode().IsRegular() {
				continue
			}
			path := filepath.Join(dir, e.Name())
			switch {
			case isBlock.MatchString(e.Name()):
				tell(path, fi)
			case strings.HasSuffix(e.Name(), unfinished) && c.now().Sub(fi.ModTime()) > time.Hour:
				_ = os.Remove(path)
			}
		}
	}
}

// minuteOf is when a block was used last, in minutes.
func minuteOf(fi fs.FileInfo) int64 { return fi.ModTime().Unix() / 60 }

// removeOldest removes the oldest blocks until seven eighths of the limit are left, and returns how many bytes are. It
// goes through the folder twice, and keeps in memory what was used in one minute alone.
func (c *Cache) removeOldest() int64 {
	used, byMinute := int64(0), map[int64]int64{}
	c.each(func(_ string, fi fs.FileInfo) {
		used += fi.Size()
		byMinute[minuteOf(fi)] += fi.Size()
	})
	excess := used - c.limit/8*7
	if excess <= 0 {
		return used
	}
	minutes := make([]int64, 0, len(byMinute))
	for m := range byMinute {
		minutes = append(minutes, m)
	}
	slices.Sort(minutes)
	last, left := int64(0), excess
	for _, m := range minutes {
		if last = m; left <= byMinute[m] {
			break
		}
		left -= byMinute[m]
	}
	return used - c.removeUpTo(last, left)
}

// block is one that may be removed.
type block struct {
	path     string
	size     int64
	lastUsed time.Time
}

// removeUpTo removes all blocks from before a minute, and of that minute the oldest of so many bytes. It returns how
// many bytes it removed.
func (c *Cache) removeUpTo(minute, bytes int64) (removed int64) {
	remove := func(path string, size int64) {
		if os.Remove(path) == nil {
			removed += size
			c.removed.Add(size)
		}
	}
	var some []block
	c.each(func(path string, fi fs.FileInfo) {
		switch m := minuteOf(fi); {
		case m < minute:
			remove(path, fi.Size())
		case m == minute:
			some = append(some, block{path, fi.Size(), fi.ModTime()})
		}
	})
	slices.SortFunc(some, func(a, b block) int { return a.lastUsed.Compare(b.lastUsed) })
	for _, b := range some {
		if bytes <= 0 {
			break
		}
		remove(b.path, b.size)
		bytes -= b.size
	}
	return removed
}
