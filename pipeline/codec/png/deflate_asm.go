//go:build amd64 && !purego

package png

import "unsafe"

//go:generate go -C ../../internal/kernel/_gen run ./deflate -out ../../../codec/png/deflate_amd64.s -stubs ../../../codec/png/deflate_stubs_amd64.go -pkg png

// symbolPad is how many bytes symbolLoop may read from the last position on that it takes.
const symbolPad = 22

// decodeAhead is decodeUntil in assembly, but for what is left to that: the end of the data, of the block, and what is in doubt.
func (d *decompressor) decodeAhead(p unsafe.Pointer, w, limit int) int {
	if safe := len(d.src) - symbolPad; d.at <= safe {
		tables := (*uint32)(&d.codes.literals[0])
		d.acc, d.bits, d.at, w = symbolLoop(tables, &d.src[0], safe, (*byte)(p), limit, d.acc, d.bits, d.at, w)
	}
	return w
}
