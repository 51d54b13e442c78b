// Package streamcopy copies the bytes of a batch with their checksum made on the way: each is read once, and written past
// the caches, since a batch is larger than these. Nothing is allocated, and no memory is kept.
package streamcopy

import (
	"hash/crc32"
	"unsafe"
)

const (
	lineBytes  = 64
	blockBytes = 63 * lineBytes // what crc32 takes best; stays in the first cache
	leastBytes = 4 * lineBytes  // worth the trouble
)

// Copy copies src to dst, which is as long or longer, and carries the checksum of src on. dst is part of a batch,
// which is larger than the caches and not read here again: it is written past them, so that its old content is not
// fetched first and what else is in them stays. The caller calls Fence before anybody else is told of dst.
func Copy(dst, src []byte, crc uint32) uint32 {
	if len(src) >= leastBytes {
		head := int(-uintptr(unsafe.Pointer(&dst[0])) % lineBytes)
		lines := (len(src) - head) &^ (lineBytes - 1)
		copy(dst, src[:head])
		crc = crc32.Update(crc, Castagnoli, src[:head])
		crc = copyLines(dst[head:head+lines], src[head:head+lines], crc)
		dst, src = dst[head+lines:], src[head+lines:]
	}
	copy(dst, src)
	return crc32.Update(crc, Castagnoli, src)
}

// Castagnoli is CRC-32C, the checksum of batches.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)
