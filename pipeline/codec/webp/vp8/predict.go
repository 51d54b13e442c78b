package vp8

import (
	"encoding/binary"
	"math/bits"
)

// The canvas is where a macroblock is made: its luma, and below it Cb and Cr side by side, each with a row above, a column to the left, and
// luma with four pixels above to the right.
const (
	canvasStride = 32
	lumaAt       = canvasStride + 8
	cbAt         = lumaAt + 17*canvasStride
	crAt         = cbAt + 16
	canvasSize   = cbAt + 8*canvasStride
)

// predict fills side×side pixels at a place of the canvas by a macroblock's mode. hasLeft and hasAbove tell whether there are such neighbours.
func predict(c *[canvasSize]byte, at, side int, mode uint8, hasLeft, hasAbove bool) {
	above := c[at-canvasStride:][:side]
	switch mode {
	case modeDC:
		fillMean(c, at, side, hasLeft, hasAbove)
	case modeVertical:
		for y := range side {
			copy(c[at+y*canvasStride:][:side], above)
		}
	case modeHorizontal:
		for y := range side {
			row := c[at+y*canvasStride-1:][:side+1]
			for x := range side {
				row[1+x] = row[0]
			}
		}
	case modeTrueMotion:
		predictTrueMotion(c, at, side)
	}
}

// fillMean fills with the mean of the neighbours that there are.
func fillMean(c *[canvasSize]byte, at, side int, hasLeft, hasAbove bool) {
	sum, n := 0, 0
	if hasAbove {
		for _, v := range c[at-canvasStride:][:side] {
			sum += int(v)
		}
		n += side
	}
	if hasLeft {
		for y := range side {
			sum += int(c[at+y*canvasStride-1])
		}
		n += side
	}
	v := uint32(128)
	if n > 0 {
		v = uint32(sum+n/2) >> bits.TrailingZeros(uint(n)) // n is a power of two
	}
	four := v * 0x01010101
	for y := range side {
		row := c[at+y*canvasStride:][:side]
		for x := 0; x < side; x += 4 {
			binary.LittleEndian.PutUint32(row[x:], four)
		}
	}
}

// predictTrueMotion continues from left to right what the row above does.
func predictTrueMotion(c *[canvasSize]byte, at, side int) {
	above, corner := c[at-canvasStride:][:side], int32(c[at-canvasStride-1])
	for y := range side {
		row := c[at+y*canvasStride-1:][:side+1]
		d := int32(row[0]) - corner
		for x, a := range above {
			row[1+x] = clip(int32(a) + d)
		}
	}
}

// clip is v within a byte.
func clip(v int32) byte {
	if uint32(v) > 255 {
		return byte(^v >> 31)
	}
	return byte(v)
}

// mean2 and mean3 are weighted means, of which the middle one counts twice.
func mean2(a, b int32) byte    { return byte((a + b + 1) >> 1) }
func mean3(a, b, c int32) byte { return byte((a + 2*b + c + 2) >> 2) }

// predictBlock fills 4×4 pixels at a place of the canvas (section 12.3).
func (k *kernels) predictBlock(c *[canvasSize]byte, at int, mode uint8) {
	switch mode {
	case modeDC:
		fillMean(c, at, 4, true, true)
	case modeTrueMotion:
		predictTrueMotion(c, at, 4)
	default:
		k.predictDirection(c, at, &directions[mode])
	}
}

// Means are of the 13 pixels around a block, from the lowest of the left column up to the corner, and on to the right, 4 beyond the block.
// The first and the last one have themselves as neighbour outside. Mean i is of pixels i−1, i and i+1, of which i counts twice; mean pair+i
// is of pixels i−1 and i.
const pair = 16

// directions tells for each mode that continues what is around a block in a direction which mean each pixel is, row by row.
var directions = [...][16]uint8{
	modeVertical:       {5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7, 8},
	modeHorizontal:     {3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0},
	modeRightDown:      {4, 5, 6, 7, 3, 4, 5, 6, 2, 3, 4, 5, 1, 2, 3, 4},
	modeLeftDown:       {6, 7, 8, 9, 7, 8, 9, 10, 8, 9, 10, 11, 9, 10, 11, 12},
	modeVerticalRight:  {pair + 5, pair + 6, pair + 7, pair + 8, 4, 5, 6, 7, 3, pair + 5, pair + 6, pair + 7, 2, 4, 5, 6},
	modeVerticalLeft:   {pair + 6, pair + 7, pair + 8, pair + 9, 6, 7, 8, 9, pair + 7, pair + 8, pair + 9, 10, 7, 8, 9, 11},
	modeHorizontalDown: {pair + 4, 4, 5, 6, pair + 3, 3, pair + 4, 4, pair + 2, 2, pair + 3, 3, pair + 1, 1, pair + 2, 2},
	modeHorizontalUp:   {pair + 3, 2, pair + 2, 1, pair + 2, 1, pair + 1, 0, pair + 1, 0, pair, pair, pair, pair, pair, pair},
}

// predictDirectionScalar fills 4×4 pixels with means of those around them.
func predictDirectionScalar(c *[canvasSize]byte, at int, direction *[16]uint8) {
	var e [15]int32 // pixel i is e[i+1]
	for i := range 4 {
		e[1+i] = int32(c[at+(3-i)*canvasStride-1])
	}
	for i, v := range c[at-canvasStride-1:][:9] {
		e[5+i] = int32(v)
	}
	e[0], e[14] = e[1], e[13]
	var means [pair + 13]byte
	for i := range 13 {
		means[i], means[pair+i] = mean3(e[i], e[i+1], e[i+2]), mean2(e[i], e[i+1])
	}
	for i, m := range direction {
		c[at+i/4*canvasStride+i%4] = means[m]
	}
}
