package vp8

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
	v := byte(128)
	if n > 0 {
		v = byte((sum + n/2) / n)
	}
	for y := range side {
		row := c[at+y*canvasStride:][:side]
		for x := range row {
			row[x] = v
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

// predictBlock fills 4×4 pixels at a place of the canvas (section 12.3). Edge has what surrounds them: from the lowest of the left
// column, up to the corner, and on to the right, 4 beyond the block.
func predictBlock(c *[canvasSize]byte, at int, mode uint8) {
	switch mode {
	case modeDC:
		fillMean(c, at, 4, true, true)
		return
	case modeTrueMotion:
		predictTrueMotion(c, at, 4)
		return
	}
	var e [13]int32
	for i := range 4 {
		e[i] = int32(c[at+(3-i)*canvasStride-1])
	}
	for i, v := range c[at-canvasStride-1:][:9] {
		e[4+i] = int32(v)
	}
	switch mode {
	case modeVertical:
		for x := range 4 {
			v := mean3(e[4+x], e[5+x], e[6+x])
			for y := range 4 {
				c[at+y*canvasStride+x] = v
			}
		}
	case modeHorizontal:
		for y := range 4 {
			v := mean3(e[4-y], e[3-y], e[max(2-y, 0)])
			for x := range 4 {
				c[at+y*canvasStride+x] = v
			}
		}
	case modeHorizontalUp:
		predictUp(c, at, &e)
	default:
		predictDiagonal(c, at, &e, mode)
	}
}

// predictUp is the mode whose direction ends at the lowest pixel to the left.
func predictUp(c *[canvasSize]byte, at int, e *[13]int32) {
	v := [10]byte{
		mean2(e[3], e[2]), mean3(e[3], e[2], e[1]), mean2(e[2], e[1]), mean3(e[2], e[1], e[0]), mean2(e[1], e[0]), mean3(e[1], e[0], e[0]),
		byte(e[0]), byte(e[0]), byte(e[0]), byte(e[0]),
	}
	for y := range 4 {
		copy(c[at+y*canvasStride:][:4], v[2*y:])
	}
}

// predictDiagonal is those modes whose pixels are means along a diagonal.
func predictDiagonal(c *[canvasSize]byte, at int, e *[13]int32, mode uint8) {
	set := func(x, y int, v byte) { c[at+y*canvasStride+x] = v }
	at3 := func(i int) byte { return mean3(e[i-1], e[i], e[i+1]) }
	at2 := func(i int) byte { return mean2(e[i], e[i+1]) }
	for y := range 4 {
		for x := range 4 {
			var v byte
			switch mode {
			case modeRightDown:
				v = at3(4 + x - y)
			case modeLeftDown:
				if i := 6 + x + y; i < 12 {
					v = at3(i)
				} else {
					v = mean3(e[11], e[12], e[12])
				}
			case modeVerticalRight:
				switch i := 2*x - y; {
				case i < -1:
					v = at3(5 - y)
				case i == -1:
					v = at3(4)
				case i&1 == 0:
					v = at2(4 + i/2)
				default:
					v = at3(4 + (i+1)/2)
				}
			case modeHorizontalDown:
				switch i := 2*y - x; {
				case i < -1:
					v = at3(3 + x)
				case i == -1:
					v = at3(4)
				case i&1 == 0:
					v = at2(3 - i/2)
				default:
					v = at3(4 - (i+1)/2)
				}
			case modeVerticalLeft:
				switch {
				case y == 3 && x == 3:
					v = at3(11)
				case y == 2 && x == 3:
					v = at3(10)
				case y&1 == 0:
					v = at2(5 + x + y/2)
				default:
					v = at3(6 + x + y/2)
				}
			}
			set(x, y, v)
		}
	}
}
