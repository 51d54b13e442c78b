//go:build amd64 && !purego

package streamcopy

import (
	"hash/crc32"

	"golang.org/x/sys/cpu"
)

// folds reports whether the processor multiplies without carries, 64 bytes at a time.
var folds = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPCLMULQDQ

// foldBytes is what streamFold takes at a time.
const foldBytes = 256

// copyLines copies src to dst, both of the same whole number of lines, dst aligned to one, with stores that pass the
// caches, and carries the checksum on.
func copyLines(dst, src []byte, crc uint32) uint32 {
	if n := len(src) / foldBytes; folds && n > 0 {
		var rest [foldBytes]byte // as long a message of the same checksum, starting from nothing
		streamFold(&dst[0], &src[0], n, ^crc, &rest)
		crc = crc32.Update(^uint32(0), Castagnoli, rest[:])
		dst, src = dst[n*foldBytes:], src[n*foldBytes:]
	}
	for len(src) > 0 {
		n := min(len(src), blockBytes)
		crc = crc32.Update(crc, Castagnoli, src[:n])
		streamLines(&dst[0], &src[0], n/lineBytes)
		dst, src = dst[n:], src[n:]
	}
	return crc
}

// streamLines copies one line or more.
//
//go:noescape
func streamLines(dst, src *byte, lines int)

// streamFold copies one block of 256 bytes or more, and folds them, together with the state of the checksum before
// them, into rest.
//
//go:noescape
func streamFold(dst, src *byte, blocks int, state uint32, rest *[foldBytes]byte)

// Fence returns when all that was streamed can be seen by others.
func Fence()
