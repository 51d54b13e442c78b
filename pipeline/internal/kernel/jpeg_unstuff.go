package kernel

import "bytes"

func unstuffScalar(dst, src []byte) (written, read int) {
	dst = dst[:len(src)]
	for {
		q := bytes.IndexByte(src[read:], 0xff)
		if q < 0 {
			return written + copy(dst[written:], src[read:]), len(src)
		}
		written += copy(dst[written:], src[read:read+q])
		read += q
		next := read + 1
		for next < len(src) && src[next] == 0xff {
			next++
		}
		if next == len(src) || src[next] != 0 {
			return written, read
		}
		dst[written] = 0xff
		written++
		read = next + 1
	}
}
