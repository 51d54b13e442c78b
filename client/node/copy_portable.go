//go:build !amd64 || purego

package node

import "hash/crc32"

var folds = false

func copySumLines(dst, src []byte, crc uint32) uint32 {
	for len(src) > 0 {
		n := min(len(src), blockBytes)
		crc = crc32.Update(crc, castagnoli, src[:n])
		copy(dst, src[:n])
		dst, src = dst[n:], src[n:]
	}
	return crc
}

func fence() {}
