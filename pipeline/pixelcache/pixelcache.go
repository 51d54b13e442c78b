// Package pixelcache keeps decoded pictures in the memory of a process, so that later epochs need not decode them. A
// picture is kept whole, as RGB rows, and is used for the very bytes of the file that it was decoded from, whose digest
// is computed anew each time. So it changes no byte and no verdict.
//
// What is kept are the pictures of the formats that take longest to decode, by the byte of pixels. A permuted epoch
// asks for every picture once, so the order of use says nothing about the next one: a picture that is kept stays until
// one of a format that takes clearly longer needs its room, or any one once nobody has looked for its data for long.
//
// It starts no goroutine.
package pixelcache

import (
	"cmp"
	"container/list"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// Key says which picture of which data: Data names the data set, and whatever else decides what a file's pixels are, or
// whether it has any.
type Key struct {
	Data   string
	Sample uint32
}

// A Cache keeps pictures within a number of bytes. Its methods may be called from many goroutines at once; those of a
// nil Cache keep nothing.
type Cache struct {
	most int64 // never changed

	mu       sync.Mutex
	pictures map[Key]*Picture
	costs    map[string]float64 // by format: nanoseconds that decoding takes for a byte of pixels; moving averages
	groups   map[groupKey]*group
	looked   map[string]time.Time // when a picture of data that has some was last looked for
	memory   memory
	held     int64 // bytes of all pictures: kept, in the making, and in use after they were removed
	closed   bool
	counts   Counts
}

// Counts are what became of a cache. Hits and Misses are of pictures that were looked for; Kept and Removed are those that were ever put there
// and those that made room.
type Counts struct {
	Hits, Misses, Kept, Removed int64
	// Pictures that are there now, the Bytes that memory takes for all, and the Limit.
	Pictures, Bytes, Limit int64
}

// A group is the pictures of one format and data that are kept.
type group struct {
	groupKey
	pictures list.List // of *Picture, the first one first
}

type groupKey struct{ data, format string }

// New returns an empty cache of most bytes; nil where that is none.
func New(most int64) *Cache {
	if most <= 0 {
		return nil
	}
	return &Cache{most: most, pictures: map[Key]*Picture{}, costs: map[string]float64{}, groups: map[groupKey]*group{}, looked: map[string]time.Time{}}
}

// A Picture has the pixels of one file. Whoever got it from Find or Reserve has it lent, and returns it by Release.
// Image is written by whoever reserved it, before Put, and by nobody later.
type Picture struct {
	Image pixel.Image

	c      *Cache
	key    Key
	format string
	digest xxh3.Uint128  // of the file
	place  *list.Element // in its group; nil: it is not kept
	lent   int           // to how many; guarded by c.mu
}

// Find returns the picture of a sample if it was made of these bytes of its file; nil: there is none. A picture of
// other bytes is removed.
func (c *Cache) Find(key Key, file []byte) *Picture {
	if c == nil {
		return nil
	}
	p := c.lend(key)
	if p != nil && xxh3.Hash128(file) == p.digest {
		c.count(&c.counts.Hits)
		return p
	}
	c.count(&c.counts.Misses)
	if p != nil {
		c.remove(p)
		p.Release()
	}
	return nil
}

// lend is the picture that is kept of a key.
func (c *Cache) lend(key Key) *Picture {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, some := c.looked[key.Data]; some {
		c.looked[key.Data] = time.Now()
	}
	p := c.pictures[key]
	if p != nil {
		p.lent++
	}
	return p
}

func (c *Cache) count(n *int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
}

// remove takes a picture out that is kept, if it still is.
func (c *Cache) remove(p *Picture) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(p)
}

// drop is remove; mu is held.
func (c *Cache) drop(p *Picture) {
	if p.place == nil {
		return
	}
	c.leaveGroup(p)
	delete(c.pictures, p.key)
	if p.lent == 0 {
		c.free(p)
	}
}

// leaveGroup takes a picture out of its group. mu is held.
func (c *Cache) leaveGroup(p *Picture) {
	g := c.groups[groupKey{p.key.Data, p.format}]
	g.pictures.Remove(p.place)
	p.place = nil
	if g.pictures.Len() > 0 {
		return
	}
	delete(c.groups, g.groupKey)
	for other := range c.groups {
		if other.data == g.data {
			return
		}
	}
	delete(c.looked, g.data)
}

// free gives a picture's memory back; mu is held. Of a cache that is closed all of it goes with the last picture.
func (c *Cache) free(p *Picture) {
	c.held -= int64(cap(p.Image.Pix))
	if !c.closed {
		c.memory.give(p.Image.Pix)
	} else if c.held == 0 {
		c.memory.close()
	}
	p.Image.Pix = nil
}

// Release gives a picture back: its pixels are not read any more. One that was reserved and not put is gone then.
func (p *Picture) Release() {
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.lent--; p.lent == 0 && p.place == nil {
		c.free(p)
	}
}

// leastCost is how many nanoseconds decoding takes at least for a byte of pixels that is worth keeping: a picture that
// is kept is read from memory too.
const leastCost = 0.5

// dearer is how many times as long another format has to take before its pictures take the room of those that are kept. Times are measured on busy
// cores; were it less, two formats that take about as long might take each other's room for ever.
const dearer = 1.5

// unusedAge is how long nobody looks for a picture of some data until all of its pictures make room for others: its job has ended, or the data has
// another list by now. It is longer than most pauses of a job.
const unusedAge = 10 * time.Minute

// Wants says whether a picture of this size would be kept now.
func (c *Cache) Wants(name string, w, h int) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.findRoom(name, needed(w, h)) != nil
}

// pageBytes is what the memory of a picture is a multiple of.
var pageBytes = int64(os.Getpagesize())

// needed is how many bytes the memory of a picture takes.
func needed(w, h int) int64 {
	return (int64(w)*int64(h)*3 + pixel.Pad + pageBytes - 1) / pageBytes * pageBytes
}

// findRoom lists the pictures that have to go so that one of so many bytes can come; nil: it cannot. mu is held.
func (c *Cache) findRoom(name string, bytes int64) []*Picture {
	cost := c.costOf(name)
	if c.closed || bytes > c.most || cost < leastCost {
		return nil
	}
	room, gone := c.most-c.held, []*Picture{}
	if room >= bytes {
		return gone
	}
	for _, g := range c.listYielding(cost) {
		for e := g.pictures.Front(); e != nil && room < bytes; e = e.Next() {
			p := e.Value.(*Picture)
			if p.lent == 0 { // the memory of one in use would not come free
				gone = append(gone, p)
				room += int64(cap(p.Image.Pix))
			}
		}
	}
	if room < bytes {
		return nil
	}
	return gone
}

// listYielding lists the groups whose pictures make room for one of this cost: those of data that nobody uses, and then those of formats that take
// clearly less; of either first that which takes least. mu is held.
func (c *Cache) listYielding(cost float64) []*group {
	now := time.Now()
	used := func(g *group) bool { return now.Sub(c.looked[g.data]) < unusedAge }
	var yielding []*group
	for _, g := range c.groups {
		if !used(g) || c.costOf(g.format)*dearer < cost {
			yielding = append(yielding, g)
		}
	}
	slices.SortFunc(yielding, func(a, b *group) int {
		if used(a) != used(b) {
			return c.looked[a.data].Compare(c.looked[b.data])
		}
		return cmp.Compare(c.costOf(a.format), c.costOf(b.format))
	})
	return yielding
}

// costOf is what a format is known to take; very much where nothing is known.
func (c *Cache) costOf(name string) float64 {
	if cost, known := c.costs[name]; known {
		return cost
	}
	return math.Inf(1)
}

// Reserve returns memory for a picture that is about to be decoded, after Wants said so; nil: there is no room. Other
// pictures are removed where they have to be.
func (c *Cache) Reserve(name string, w, h int) *Picture {
	if c == nil {
		return nil
	}
	bytes := needed(w, h)
	c.mu.Lock()
	defer c.mu.Unlock()
	gone := c.findRoom(name, bytes)
	if gone == nil {
		return nil
	}
	for _, p := range gone {
		c.drop(p)
		c.counts.Removed++
	}
	pix := c.memory.take(int(bytes))
	if pix == nil {
		return nil
	}
	c.held += bytes
	return &Picture{Image: pixel.Image{Pix: pix, W: w, H: h, Stride: 3 * w}, c: c, format: name, lent: 1}
}

// Put keeps a picture that was reserved. Its rows were decoded from the file, whole, which took so long. Another
// picture of the same sample is removed.
func (c *Cache) Put(key Key, file []byte, p *Picture, took time.Duration) {
	p.key, p.digest = key, xxh3.Hash128(file)
	c.mu.Lock()
	defer c.mu.Unlock()
	cost := c.addCost(p.format, float64(took)/float64(3*p.Image.W*p.Image.H))
	if before := c.pictures[key]; before != nil {
		c.drop(before)
	}
	if cost < leastCost || c.closed {
		return
	}
	name := groupKey{key.Data, p.format}
	g := c.groups[name]
	if g == nil {
		g = &group{groupKey: name}
		c.groups[name] = g
	}
	c.pictures[key], p.place, c.looked[key.Data] = p, g.pictures.PushBack(p), time.Now()
	c.counts.Kept++
}

// addCost adds what one picture took to its format's average, and returns that.
func (c *Cache) addCost(name string, cost float64) float64 {
	average, known := c.costs[name]
	if !known {
		average = cost
	}
	const weight = 1.0 / 16
	average += float64((cost - average) * weight)
	c.costs[name] = average
	return average
}

// Counts tells what became of the cache so far; of a nil one nothing did.
func (c *Cache) Counts() Counts {
	if c == nil {
		return Counts{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.counts
	n.Pictures, n.Bytes, n.Limit = int64(len(c.pictures)), c.held, c.most
	return n
}

// Close gives the memory back of all pictures that are not lent. The others' is given back when they are.
func (c *Cache) Close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, p := range c.pictures {
		c.drop(p)
	}
	if c.held == 0 {
		c.memory.close()
	}
}
