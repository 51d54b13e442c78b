package node

import (
	"hash/crc32"
	"unsafe"
)

const (
	lineBytes  = 64
	blockBytes = 63 * lineBytes // what crc32 takes best; stays in the first cache
	leastBytes = 4 * lineBytes  // worth the trouble
)

// copySum copies src to dst, which is as long or longer, and carries the checksum of src on. dst is part of a batch,
// which is larger than the caches and not read here again: it is written past them, so that its old content is not
// fetched first and what else is in them stays. The caller calls fence before anybody else is told of dst.
func copySum(dst, src []byte, crc uint32) uint32 {
	if len(src) >= leastBytes {
		head := int(-uintptr(unsafe.Pointer(&dst[0])) % lineBytes)
		lines := (len(src) - head) &^ (lineBytes - 1)
		copy(dst, src[:head])
		crc = crc32.Update(crc, castagnoli, src[:head])
		crc = copySumLines(dst[head:head+lines], src[head:head+lines], crc)
		dst, src = dst[head+lines:], src[head+lines:]
	}
	copy(dst, src)
	return crc32.Update(crc, castagnoli, src)
}

// castagnoli is CRC-32C, the checksum of batches.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)
