package streamcopy

import (
	"bytes"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// TestCopy compares with copy and crc32 at every alignment, and looks at the bytes around what was to be written.
func TestCopy(t *testing.T) {
	t.Run("this processor", checkCopy)
	t.Run("any processor", func(t *testing.T) {
		defer func(had bool) { folds = had }(folds)
		folds = false
		checkCopy(t)
	})
}

func checkCopy(t *testing.T) {
	src, dst, want := make([]byte, 40<<10), make([]byte, 40<<10), make([]byte, 40<<10)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(src)
	for range 5000 {
		from, to, n, crc := rand.IntN(2*lineBytes), rand.IntN(2*lineBytes), rand.IntN(5*blockBytes), rand.Uint32()
		if rand.IntN(4) == 0 {
			n %= 2 * leastBytes
		}
		clear(dst)
		clear(want)
		copy(want[to:], src[from:from+n])
		got := Copy(dst[to:], src[from:from+n], crc)
		Fence()
		if !bytes.Equal(dst, want) {
			t.Fatalf("%d bytes from %d to %d: other bytes", n, from, to)
		}
		if w := crc32.Update(crc, Castagnoli, src[from:from+n]); got != w {
			t.Fatalf("%d bytes from %d to %d: checksum %08x, not %08x", n, from, to, got, w)
		}
	}
}
