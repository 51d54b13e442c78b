package pipeline

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

func TestShiftJoinsChecksums(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 1<<16)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	for range 200 {
		n := r.IntN(len(b) + 1)
		k := r.IntN(n + 1)
		want := crc32.Checksum(b[:n], castagnoli)
		first, second := crc32.Checksum(b[:k], castagnoli), crc32.Checksum(b[k:n], castagnoli)
		if got := newShift(n-k).appendTo(first) ^ second; got != want {
			t.Fatalf("%d bytes joined at %d: %08x, want %08x", n, k, got, want)
		}
	}
}
