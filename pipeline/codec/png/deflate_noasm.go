//go:build !amd64 || purego

package png

import "unsafe"

func (d *decompressor) decodeAhead(unsafe.Pointer, int, int) int {
	panic("png: built without assembly")
}
