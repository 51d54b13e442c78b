// Package lasthop brings images that nodes made into the form in which a training loop has them: types, values,
// layouts, erased rectangles. It writes memory of its callers', keeps none, and starts no goroutine.
package lasthop

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/feedwater-io/feedwater/batch"
)

// Hop says what becomes of the images of a field: the pointwise end of the transforms (ToDtype, Normalize) as a table,
// and the layout. The zero value leaves them as they come: uint8, height × width × channel.
type Hop struct {
	// DType is "uint8", "float32", "float16" or "bfloat16".
	DType string `json:"dtype"`
	// Table maps each value of each channel: base64 of [3][256] elements, little-endian. Empty: values stay as they
	// are, and DType is "uint8".
	Table string `json:"table"`
	// Layout is "hwc" or "chw".
	Layout string `json:"layout"`
	// Erase is what rectangles of the batch's field "erase" are filled with: base64 of [n][3] elements, little-endian.
	Erase string `json:"erase"`
	// Crops is how many pictures of one size stand below each other in an image, each converted by itself; 0: one.
	Crops int `json:"crops"`
}

// A convert writes one image to dst in its last form. src is height × width × 3 bytes; they do not overlap.
type convert func(dst, src []byte)

// elementBytes is the size of one element, 0 for an unknown type.
func (l *Hop) elementBytes() int {
	switch l.DType {
	case "":
		return 1
	case "uint8", "float16", "bfloat16", "float32":
		return batch.ElementSize(l.DType)
	}
	return 0
}

// newConverter makes the conversion; nil means that images stay as they come.
func (l *Hop) newConverter() (convert, error) {
	one, err := l.newPictureConverter()
	if err != nil || one == nil || l.Crops < 2 {
		return one, err
	}
	return func(dst, src []byte) {
		from, to := len(src)/l.Crops, len(dst)/l.Crops
		for i := range l.Crops {
			one(dst[i*to:(i+1)*to], src[i*from:(i+1)*from])
		}
	}, nil
}

// newPictureConverter is newConverter for one picture.
func (l *Hop) newPictureConverter() (convert, error) {
	size, planar := l.elementBytes(), l.Layout == "chw"
	switch {
	case size == 0:
		return nil, fmt.Errorf("last_hop.dtype %q is none of uint8, float16, bfloat16, float32", l.DType)
	case l.Layout != "" && l.Layout != "hwc" && !planar:
		return nil, fmt.Errorf("last_hop.layout %q is neither hwc nor chw", l.Layout)
	case l.Table == "" && size != 1:
		return nil, fmt.Errorf("last_hop.dtype %q needs a table", l.DType)
	}
	raw, err := base64.StdEncoding.DecodeString(l.Table)
	if err != nil || l.Table != "" && len(raw) != 3*256*size {
		return nil, fmt.Errorf("last_hop.table: %d bytes, not [3][256] of %s", len(raw), l.DType)
	}
	switch {
	case size == 4:
		return newTableConverter(decodeTable(raw, binary.LittleEndian.Uint32), planar), nil
	case size == 2:
		return newTableConverter(decodeTable(raw, binary.LittleEndian.Uint16), planar), nil
	case l.Table != "":
		return newTableConverter(decodeTable(raw, func(b []byte) uint8 { return b[0] }), planar), nil
	case planar:
		return splitChannels, nil
	}
	return nil, nil
}

type element interface{ ~uint8 | ~uint16 | ~uint32 }

// table is one value per channel and sample value.
type table[T element] [3][256]T

func decodeTable[T element](raw []byte, get func([]byte) T) *table[T] {
	var t table[T]
	size := int(unsafe.Sizeof(t[0][0]))
	for c := range t {
		for v := range t[c] {
			t[c][v] = get(raw[(c*256+v)*size:])
		}
	}
	return &t
}

// newTableConverter looks every value up.
func newTableConverter[T element](t *table[T], planar bool) convert {
	return func(dst, src []byte) {
		out := viewElements[T](dst, len(src))
		if planar {
			n := len(src) / 3
			mapPlanes(out[:n], out[n:2*n], out[2*n:3*n], src, t)
		} else {
			mapPixels(out, src, t)
		}
	}
}

// viewElements views dst, which begins at a multiple of 64, as n elements in this machine's byte order.
func viewElements[T element](dst []byte, n int) []T {
	var e T
	_ = dst[n*int(unsafe.Sizeof(e))-1]
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(dst))), n)
}

func mapPixels[T element](dst []T, src []byte, t *table[T]) {
	r, g, b := &t[0], &t[1], &t[2]
	for len(src) >= 3 && len(dst) >= 3 {
		dst[0], dst[1], dst[2] = r[src[0]], g[src[1]], b[src[2]]
		dst, src = dst[3:], src[3:]
	}
}

func mapPlanes[T element](r, g, b []T, src []byte, t *table[T]) {
	tr, tg, tb := &t[0], &t[1], &t[2]
	g, b = g[:len(r)], b[:len(r)]
	for i := range r {
		p := src[3*i : 3*i+3 : 3*i+3]
		r[i], g[i], b[i] = tr[p[0]], tg[p[1]], tb[p[2]]
	}
}

// splitChannels separates the channels.
func splitChannels(dst, src []byte) {
	n := len(src) / 3
	r, g, b := dst[:n], dst[n:2*n], dst[2*n:3*n]
	for i := range r {
		p := src[3*i : 3*i+3 : 3*i+3]
		r[i], g[i], b[i] = p[0], p[1], p[2]
	}
}
