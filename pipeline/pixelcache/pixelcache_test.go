package pixelcache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// per is what a picture of 100×50 pixels of some format took: so many nanoseconds for each byte.
const per = 100 * 50 * 3

// keep puts a picture of 100×50 pixels, all of them n, and reports whether there was room.
func keep(c *Cache, format string, cost time.Duration, n int) bool {
	if !c.Wants(format, 100, 50) {
		return false
	}
	p := c.Reserve(format, 100, 50)
	if p == nil {
		return false
	}
	defer p.Release()
	for i := range p.Image.Pix {
		p.Image.Pix[i] = byte(n)
	}
	c.Put(keyOf(format, n), fileOf(format, n), p, cost*per)
	return true
}

func keyOf(format string, n int) Key { return Key{Data: format, Sample: uint32(n)} }

func fileOf(format string, n int) []byte { return fmt.Appendf(nil, "the file of %s %d", format, n) }

// find looks for a picture that keep put, and checks its pixels.
func find(t *testing.T, c *Cache, format string, n int) bool {
	t.Helper()
	p := c.Find(keyOf(format, n), fileOf(format, n))
	if p == nil {
		return false
	}
	defer p.Release()
	if p.Image.W != 100 || p.Image.H != 50 || p.Image.Stride != 300 || len(p.Image.Pix) < per+64 {
		t.Errorf("%d×%d, %d bytes", p.Image.W, p.Image.H, len(p.Image.Pix))
	}
	if !bytes.Equal(p.Image.Pix[:per], bytes.Repeat([]byte{byte(n)}, per)) {
		t.Errorf("%s %d: other pixels", format, n)
	}
	return true
}

func countFound(t *testing.T, c *Cache, format string, most int) (n int) {
	t.Helper()
	for i := range most {
		if find(t, c, format, i) {
			n++
		}
	}
	return n
}

// room is a cache that has room for so many pictures of 100×50 pixels and not for another one.
func room(n int64) *Cache { return New((n+1)*needed(100, 50) - 1) }

func TestFullCacheIsLeftAlone(t *testing.T) {
	c := room(4)
	for n := range 10 {
		if kept := keep(c, "png", 10, n); kept != (n < 4) {
			t.Errorf("picture %d: %t", n, kept)
		}
	}
	if n := countFound(t, c, "png", 10); n != 4 {
		t.Errorf("%d found", n)
	}
	want := Counts{Hits: 4, Misses: 6, Kept: 4, Pictures: 4, Bytes: 4 * needed(100, 50), Limit: 5*needed(100, 50) - 1}
	if got := c.Counts(); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
}

func TestPictureThatIsLargerThanAll(t *testing.T) {
	if c := New(needed(100, 50) - 1); c.Wants("png", 100, 50) || c.Reserve("png", 100, 50) != nil {
		t.Error("it is wanted")
	}
}

// What takes clearly longer takes the room of what takes least, and nothing else takes any.
func TestDearerFormatsTakeRoom(t *testing.T) {
	c := room(4)
	for n := range 2 {
		keep(c, "jpeg", 2, n)
		keep(c, "webp", 6, n)
	}
	for n := range 3 {
		if !keep(c, "png", 12, n) {
			t.Errorf("png %d has no room", n)
		}
	}
	if j, w, p := countFound(t, c, "jpeg", 2), countFound(t, c, "webp", 2), countFound(t, c, "png", 3); j != 0 || w != 1 || p != 3 {
		t.Errorf("%d JPEG, %d WebP, %d PNG", j, w, p)
	}
	if keep(c, "jpeg", 2, 7) || keep(c, "webp", 6, 7) {
		t.Error("a cheaper one took room")
	}
	similar := room(1)
	keep(similar, "a", 10, 0)
	keep(similar, "b", 13, 0) // nothing is known of it before
	if !find(t, similar, "b", 0) {
		t.Error("a format is never met")
	}
	if keep(similar, "a", 10, 1) || keep(similar, "b", 13, 1) {
		t.Error("formats that take about as long take each other's room")
	}
}

// Pictures of data that nobody looks for any more make room for all others, those of the data that was used last at the end; pictures of data in use
// for none of their kind.
func TestUnusedDataMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := room(4)
		keep := func(data string, n int) bool {
			p := c.Reserve("png", 100, 50)
			if p == nil {
				return false
			}
			c.Put(Key{data, uint32(n)}, nil, p, 10*per)
			p.Release()
			return true
		}
		kept := func(data string) (n int) {
			for key := range c.pictures {
				if key.Data == data {
					n++
				}
			}
			return n
		}
		look := func(data string) { c.Find(Key{data, 99}, nil) } // it is used, found or not
		for n := range 2 {
			keep("old", n)
		}
		time.Sleep(time.Minute)
		for n := range 2 {
			keep("new", n)
		}
		time.Sleep(unusedAge - 2*time.Minute)
		if keep("other", 0) {
			t.Error("data in use makes room")
		}
		look("new")
		time.Sleep(2 * time.Minute)
		if !keep("other", 0) || kept("old") != 1 || !keep("other", 1) || kept("old") != 0 {
			t.Error("what nobody uses makes no room")
		}
		if keep("other", 2) || kept("new") != 2 {
			t.Error("data that was looked for makes room")
		}
		look("other")
		time.Sleep(unusedAge - time.Minute)
		look("other")
		if !keep("other", 2) || !keep("other", 3) || keep("other", 4) || kept("other") != 4 {
			t.Errorf("%d pictures", kept("other"))
		}
		if len(c.looked) != 1 || len(c.groups) != 1 {
			t.Errorf("%v are known, %d groups", c.looked, len(c.groups))
		}
	})
}

// A picture that takes no longer to decode than to copy is not kept, and is not tried again.
func TestWhatCostsNothingIsNotKept(t *testing.T) {
	c := room(4)
	keep(c, "bmp", 0, 0)
	if find(t, c, "bmp", 0) || c.Wants("bmp", 100, 50) || c.Counts().Bytes != 0 {
		t.Errorf("%+v", c.Counts())
	}
}

func TestPictureOfOtherBytesIsRemoved(t *testing.T) {
	c := room(4)
	keep(c, "png", 10, 1)
	if p := c.Find(keyOf("png", 1), fileOf("png", 2)); p != nil {
		t.Error("it is used for another file")
	}
	if n := c.Counts(); n.Pictures != 0 || n.Bytes != 0 {
		t.Errorf("%+v", n)
	}
	keep(c, "png", 10, 1)
	keep(c, "png", 10, 1)
	if n := c.Counts(); n.Pictures != 1 || n.Bytes != needed(100, 50) || !find(t, c, "png", 1) {
		t.Errorf("put twice: %+v", n)
	}
}

// Pixels that are lent stay, and count, until they are given back, whatever becomes of the cache.
func TestLentPixelsStay(t *testing.T) {
	c := room(1)
	keep(c, "jpeg", 2, 3)
	lent := c.Find(keyOf("jpeg", 3), fileOf("jpeg", 3))
	if keep(c, "png", 20, 0) {
		t.Error("the room of pixels in use was taken")
	}
	c.Close()
	if n := c.Counts(); n.Pictures != 0 || n.Bytes != needed(100, 50) {
		t.Errorf("closed: %+v", n)
	}
	if !bytes.Equal(lent.Image.Pix[:per], bytes.Repeat([]byte{3}, per)) {
		t.Error("other pixels")
	}
	lent.Release()
	if n := c.Counts(); n.Bytes != 0 {
		t.Errorf("given back: %+v", n)
	}
}

func TestReservedAndNotPut(t *testing.T) {
	c := room(2)
	p := c.Reserve("png", 100, 50)
	if n := c.Counts().Bytes; n != needed(100, 50) {
		t.Errorf("%d bytes", n)
	}
	p.Release()
	if n := c.Counts(); n.Bytes != 0 || n.Pictures != 0 {
		t.Errorf("%+v", n)
	}
}

func TestNoCache(t *testing.T) {
	c := New(0)
	if c.Wants("png", 1, 1) || c.Reserve("png", 1, 1) != nil || c.Find(Key{}, nil) != nil || c.Counts() != (Counts{}) {
		t.Error("something is kept")
	}
	c.Close()
}

// What is asked for each picture takes no memory, in a full cache neither.
func TestFindAllocatesNothing(t *testing.T) {
	c := room(1)
	keep(c, "png", 10, 0)
	key, file := keyOf("png", 0), fileOf("png", 0)
	if n := testing.AllocsPerRun(100, func() { c.Find(key, file).Release() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { c.Wants("png", 100, 50) }); n != 0 {
		t.Errorf("%v allocations of a full cache", n)
	}
}

// Many at once find what was put, and all memory is given back.
func TestManyAtOnce(t *testing.T) {
	c := room(7)
	var group sync.WaitGroup
	for seed := range uint64(8) {
		group.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for range 2000 {
				n := r.IntN(12)
				format := []string{"jpeg", "png"}[n%2]
				if !find(t, c, format, n) {
					keep(c, format, time.Duration(2+10*(n%2)), n)
				}
				if n := c.Counts(); n.Bytes > n.Limit {
					t.Errorf("%d bytes of %d", n.Bytes, n.Limit)
				}
			}
		})
	}
	group.Wait()
	if n := countFound(t, c, "png", 12); n != 6 {
		t.Errorf("%d PNG of 6", n)
	}
	c.Close()
	if n := c.Counts(); n.Bytes != 0 || n.Pictures != 0 {
		t.Errorf("%+v", n)
	}
}
