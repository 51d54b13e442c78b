//go:build linux && !portable

package pixelcache

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mappings is how many the process has.
func mappings(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(maps, []byte("\n"))
}

// Pictures that come and go leave no holes between mappings: a process may have 65,530 of them, and ends where it needs more.
func TestMappingsAreFew(t *testing.T) {
	c := New(64 << 20)
	defer c.Close()
	r := rand.New(rand.NewPCG(1, 11))
	before := mappings(t)
	for n := range 20_000 {
		format, cost := "cheap", 2*time.Nanosecond
		if n > 2_000 && r.IntN(2) == 0 { // each takes the room of those before
			format, cost = "dear", 20*time.Nanosecond
		}
		w, h := 8+r.IntN(100), 8+r.IntN(100)
		p := c.Reserve(format, w, h)
		if p == nil {
			continue
		}
		c.Put(Key{Sample: uint32(n)}, nil, p, cost*time.Duration(3*w*h))
		if r.IntN(3) == 0 {
			c.Find(Key{Sample: uint32(n)}, []byte("others")) // which removes it
		}
		p.Release()
	}
	if n := c.Counts(); n.Removed < 1000 || n.Pictures < 1000 {
		t.Fatalf("%+v", n)
	}
	if more := mappings(t) - before; more > 50 {
		t.Errorf("%d more mappings", more)
	}
}

// Memory that was given back is nobody's until it is taken again, by what is about as large.
func TestGivenBack(t *testing.T) {
	var m memory
	defer m.close()
	page := os.Getpagesize()
	first, second := m.take(40*page), m.take(40*page)
	for i := range first {
		first[i], second[i] = 1, 2
	}
	resident := make([]byte, 40)
	count := func() (n int) {
		if _, _, err := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&first[0])), uintptr(len(first)), uintptr(unsafe.Pointer(&resident[0]))); err != 0 {
			t.Fatal(err)
		}
		return bytes.Count(resident, []byte{1})
	}
	if n := count(); n != 40 {
		t.Fatalf("%d pages of 40 in memory", n)
	}
	m.give(first)
	if n := count(); n != 0 {
		t.Errorf("%d pages are still in memory", n)
	}
	if !bytes.Equal(second, bytes.Repeat([]byte{2}, 40*page)) {
		t.Error("what is beside it has changed")
	}
	if again := m.take(39 * page); &again[0] != &first[0] || len(again) != 39*page || cap(again) != len(again) {
		t.Error("its room is not used")
	}
	if large := m.take(mappingBytes + page); len(large) != mappingBytes+page || len(m.mappings) != 2 {
		t.Errorf("%d bytes, %d mappings", len(large), len(m.mappings))
	}
}

func TestSizeClass(t *testing.T) {
	page, classes := os.Getpagesize(), map[int]bool{}
	for pages := 1; pages < 5000; pages++ {
		n := pages * page
		size := sizeClass(n)
		if size < n || size > n+n/8 || size%page != 0 || sizeClass(size) != size {
			t.Fatalf("%d pages: %d bytes", pages, size)
		}
		classes[size] = true
	}
	if len(classes) > 100 {
		t.Errorf("%d classes", len(classes))
	}
}
