// Package readcache keeps what was read from servers, or unpacked, on a disk of this machine, for the next epoch. A
// block is whole or not there, and each is checked when it is read: what a process that was killed or a disk has left
// behind is never taken for it. Several processes may share a folder. Those blocks that were not used for longest make
// room. One goroutine at a time makes room. Each read and each write of a block has one, which is left behind where the
// disk does not answer for a second: then there are no blocks until it does. Close waits a second for all of them.
package readcache

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A block is a file: a magic, CRC-32C of what follows, its key, and its bytes. Its name is its key in hex, in a folder that is called as the first
// byte.
const (
	magic     = "fwblock1"
	headBytes = len(magic) + 4 + sha256.Size
	ending    = ".block"
	// unfinished is how names of files end that are not blocks yet.
	unfinished = ".tmp"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Key names a block.
type Key [sha256.Size]byte

// KeyOf is the key of so many bytes from offset on, of one version of an object. part says what was unpacked of it, if anything was. All of these have
// to name the same bytes for ever.
func KeyOf(place, object, version, part string, offset, size int64) Key {
	line := make([]byte, 0, 256)
	for _, s := range []string{place, object, version, part} {
		line = append(binary.LittleEndian.AppendUint32(line, uint32(len(s))), s...)
	}
	line = binary.LittleEndian.AppendUint64(line, uint64(offset))
	return sha256.Sum256(binary.LittleEndian.AppendUint64(line, uint64(size)))
}

// Cache is a folder of blocks. Its methods may be called by many goroutines at once; a nil Cache has no blocks and takes none.
type Cache struct {
	dir     string
	limit   int64
	trouble func(error)
	now     func() time.Time // tests set the clock

	touchAfter time.Duration // a block in use is noted so often

	disk     disk
	usage    usage
	used     atomic.Int64 // as far as is known
	opened   time.Time
	pausing  atomic.Int64 // until then, in nanoseconds since it was opened, nothing is written: the clock may be set back meanwhile
	sweeping sync.Mutex   // held while room is made
	running  sync.WaitGroup

	hits, misses, damaged, refused, read, written, removed atomic.Int64
}

// Counts of a Cache so far, and how many bytes the folder has as far as is known.
type Counts struct {
	// Hits and Misses are blocks that were there, and those that were not.
	Hits, Misses int64
	// Damaged are blocks that were there and not whole.
	Damaged int64
	// Refused are blocks that were not kept, for want of room or since the disk failed.
	Refused int64
	// Bytes that were read and written, and removed to make room.
	Read, Written, Removed int64
	// Used and Limit in bytes.
	Used, Limit int64
}

// Open uses a folder, which is made if there is none, for so many bytes at most. It is for this user alone, see ownFolder. trouble is told why blocks are not kept, now and then; nil: nobody.
func Open(dir string, limit int64, trouble func(error)) (*Cache, error) {
	if limit <= 0 {
		return nil, fmt.Errorf("a read cache of %d bytes", limit)
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = ownFolder(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("the read cache cannot be used: %w", err)
	}
	if trouble == nil {
		trouble = func(error) {}
	}
	c := &Cache{dir: dir, limit: limit, trouble: trouble, now: time.Now, opened: time.Now(), touchAfter: time.Minute}
	c.pausing.Store(math.MinInt64)
	c.disk = disk{patience: patience, places: make(chan struct{}, mostCalls), gaveUp: c.tellHung, slow: func() {}}
	if err := c.usage.open(filepath.Join(dir, "usage")); err != nil {
		return nil, fmt.Errorf("the read cache %s cannot be used: %w", dir, err)
	}
	return c, nil
}

// patience is how long a call on the disk may take.
const patience = time.Second

// tellHung tells that the disk does not answer, unless something was told in the last seconds.
func (c *Cache) tellHung() {
	age := c.age()
	if c.pausing.Swap(int64(age+pause)) <= int64(age) {
		c.trouble(fmt.Errorf("the disk of %s has not answered for %s: nothing is read there until it does, and the server is asked instead", c.dir, c.disk.patience))
	}
}

// age is how long the cache has been open.
func (c *Cache) age() time.Duration { return c.now().Sub(c.opened) }

// Close waits for what is going on, unless the disk does not answer. Nothing may be called afterwards.
func (c *Cache) Close() error {
	if c == nil {
		return nil
	}
	var err error
	if !c.disk.run(func() {
		c.running.Wait()
		err = c.usage.close()
	}) {
		return nil
	}
	return err
}

// Limit is how many bytes the folder may have; 0 of nil.
func (c *Cache) Limit() int64 {
	if c == nil {
		return 0
	}
	return c.limit
}

// Counts tells what was done so far.
func (c *Cache) Counts() Counts {
	if c == nil {
		return Counts{}
	}
	c.disk.run(func() { _, _ = c.count(0) }) // else as before
	return Counts{
		Hits: c.hits.Load(), Misses: c.misses.Load(), Damaged: c.damaged.Load(), Refused: c.refused.Load(),
		Read: c.read.Load(), Written: c.written.Load(), Removed: c.removed.Load(), Used: c.used.Load(), Limit: c.limit,
	}
}

// count adds to the bytes that the folder has.
func (c *Cache) count(n int64) (used int64, err error) {
	if used, err = c.usage.add(n); err == nil {
		c.used.Store(used)
	}
	return used, err
}

func (c *Cache) path(k *Key) string {
	name := hex.EncodeToString(k[:])
	return filepath.Join(c.dir, name[:2], name[2:]+ending)
}

// buffers are what blocks are read into: a read that was given up may still write its own.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Read fills p with a block; false where there is none of this length, it is not whole, or the disk does not answer.
func (c *Cache) Read(k Key, p []byte) bool {
	if c == nil {
		return false
	}
	buf, _ := buffers.Get().(*[]byte)
	*buf = slices.Grow((*buf)[:0], len(p))[:len(p)]
	found := false
	if !c.disk.run(func() { found = c.readInto(k, *buf) }) {
		c.misses.Add(1)
		return false
	}
	if found {
		copy(p, *buf)
	}
	buffers.Put(buf)
	return found
}

// readInto is Read, as long as that takes.
func (c *Cache) readInto(k Key, p []byte) bool {
	path := c.path(&k)
	f, err := openBlock(path)
	if isNoBlock(err) {
		c.misses.Add(1)
		c.damaged.Add(1)
		c.discard(path, nil)
		return false
	}
	if err != nil {
		c.misses.Add(1)
		return false
	}
	defer f.Close()
	fi, err := f.Stat()
	switch {
	case err == nil && isOurs(fi):
		err = readBlock(f, fi.Size(), &k, p)
	case err == nil:
		fi, err = nil, errDamaged // what is none was never counted
	}
	if err != nil {
		c.misses.Add(1)
		c.damaged.Add(1)
		c.discard(path, fi)
		return false
	}
	if now := c.now(); now.Sub(fi.ModTime()) > c.touchAfter {
		_ = os.Chtimes(path, now, now) // else it makes room a little earlier
	}
	c.hits.Add(1)
	c.read.Add(int64(len(p)))
	return true
}

var errDamaged = errors.New("the block is damaged")

// readBlock reads a block that should have this key and the length of p.
func readBlock(f io.ReaderAt, size int64, k *Key, p []byte) error {
	var head [headBytes]byte
	if size != int64(headBytes+len(p)) {
		return errDamaged
	}
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return err
	}
	if n, err := f.ReadAt(p, int64(headBytes)); n < len(p) {
		return err
	}
	sum := binary.LittleEndian.Uint32(head[len(magic):])
	if string(head[:len(magic)]) != magic || Key(head[len(magic)+4:]) != *k || sum != checksum(head[len(magic)+4:], p) {
		return errDamaged
	}
	return nil
}

func checksum(key, p []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, p)
}

// discard removes a file that is no block.
func (c *Cache) discard(path string, fi os.FileInfo) {
	if os.Remove(path) == nil && fi != nil {
		_, _ = c.count(-fi.Size()) // else less fits until room is made
	}
}

// pause is how long nothing is written after the disk failed.
const pause = 10 * time.Second

// Write keeps a block, if there is room and the disk takes it.
func (c *Cache) Write(k Key, p []byte) {
	switch {
	case c == nil || int64(c.age()) < c.pausing.Load():
	case int64(headBytes+len(p)) > c.limit/16: // it would have too many others removed
		c.refused.Add(1)
	default:
		if block := blockOf(&k, p); !c.disk.run(func() { c.write(c.path(&k), block) }) {
			c.refused.Add(1)
		}
	}
}

// write is Write, as long as that takes.
func (c *Cache) write(path string, block []byte) {
	if _, err := os.Lstat(path); err == nil {
		return // somebody else was faster
	}
	n := int64(len(block))
	used, err := c.count(n)
	if err == nil && used > c.limit {
		c.refused.Add(1)
		_, err = c.count(-n)
	} else if err == nil {
		if err = writeBlock(path, block); err != nil {
			_, _ = c.count(-n)
		} else {
			c.written.Add(n - int64(headBytes))
		}
	}
	if err != nil {
		c.refused.Add(1)
		c.pausing.Store(int64(c.age() + pause))
		c.trouble(err)
	}
	if used > c.limit-c.limit/16 {
		c.makeRoom()
	}
}

// blockOf is the file of a block.
func blockOf(k *Key, p []byte) []byte {
	block := make([]byte, 0, headBytes+len(p))
	block = append(block, magic...)
	block = binary.LittleEndian.AppendUint32(block, checksum(k[:], p))
	return append(append(block, k[:]...), p...)
}

// writeBlock makes a file of a block, whole or not at all.
func writeBlock(path string, block []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".*"+unfinished)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(dir, 0o700); err == nil {
			f, err = os.CreateTemp(dir, ".*"+unfinished)
		}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(block)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // or what makes room does
	}
	return err
}
