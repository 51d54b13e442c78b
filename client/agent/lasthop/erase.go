package lasthop

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

// eraseField is the array of the rectangles to erase, "erase.0" and so on those of views: for each RandomErasing top,
// left, height, width and two words of noise, int64. Height 0: none; first word 0: no noise.
const eraseField = "erase"

const boxBytes = 6 * 8

// decodeErasures are what rectangles are filled with: three elements each, one per channel.
func (l *Hop) decodeErasures() ([][]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(l.Erase)
	size := 3 * l.elementBytes()
	if err != nil || size > 0 && len(raw)%size != 0 {
		return nil, fmt.Errorf("last_hop.erase: %d bytes, not [n][3] of %q", len(raw), l.DType)
	}
	var all [][]byte
	for ; len(raw) > 0; raw = raw[size:] {
		all = append(all, raw[:size])
	}
	return all, nil
}

// canvas is an image in its final form.
type canvas struct {
	pix     []byte
	h, w    int
	element int
	planar  bool
	put     func(dst []byte, x float32) // writes one element; nil for bytes
}

// eraseBox fills one box with three elements; false where it leaves the image.
func (c canvas) eraseBox(box, value []byte) bool {
	var n [6]uint64 // top, left, height, width, noise
	for i := range n {
		n[i] = binary.LittleEndian.Uint64(box[8*i:])
	}
	if n[2] == 0 || n[3] == 0 {
		return true
	}
	h, w := uint64(c.h), uint64(c.w)
	if max(n[0], n[2]) > h || max(n[1], n[3]) > w || n[0]+n[2] > h || n[1]+n[3] > w {
		return false
	}
	top, left, rows, columns := int(n[0]), int(n[1]), int(n[2]), int(n[3])
	if n[4] != 0 && c.put != nil {
		c.fillNoise(order.Key{uint32(n[4]), uint32(n[5])}, top, left, rows, columns)
		return true
	}
	if !c.planar {
		fillRows(c.pix, value, (top*c.w+left)*len(value), rows, columns, c.w)
		return true
	}
	for k := range 3 {
		plane := c.pix[k*c.h*c.w*c.element:]
		fillRows(plane, value[k*c.element:(k+1)*c.element], (top*c.w+left)*c.element, rows, columns, c.w)
	}
	return true
}

// fillRows repeats value columns times in each of some rows of width values; the first row begins at byte first.
func fillRows(pix, value []byte, first, rows, columns, width int) {
	row := pix[first : first+columns*len(value)]
	copy(row, value)
	for n := len(value); n < len(row); n *= 2 {
		copy(row[n:], row[:n])
	}
	for y := 1; y < rows; y++ {
		copy(pix[first+y*width*len(value):], row)
	}
}

// fillNoise fills a rectangle with normal numbers: channel by channel, row by row, four for each block of the key's
// words.
func (c canvas) fillNoise(k order.Key, top, left, rows, columns int) {
	var four [4]float32
	n := 0
	for channel := range 3 {
		for y := top; y < top+rows; y++ {
			at, step := (y*c.w+left)*3+channel, 3
			if c.planar {
				at, step = (channel*c.h+y)*c.w+left, 1
			}
			for range columns {
				if n&3 == 0 {
					four = drawNormals(k.Block(order.Sample{}, uint32(n/4)))
				}
				c.put(c.pix[at*c.element:], four[n&3])
				at += step
				n++
			}
		}
	}
}
