package vp8

import "math/bits"

// predict fills a macroblock of a plane at a place by its mode. hasLeft and hasAbove tell whether there are such neighbours.
func predict(p *plane, at int, mode uint8, hasLeft, hasAbove bool) {
	side, above := p.side, p.samples[at-p.stride:][:p.side]
	switch mode {
	case modeDC:
		fillSquare(p, at, side, p.mean(at, side, hasLeft, hasAbove))
	case modeVertical:
		for y := range side {
			copy(p.samples[at+y*p.stride:], above)
		}
	case modeHorizontal:
		for y := range side {
			row := p.samples[at+y*p.stride-1:]
			fill(row[1:1+side], row[0])
		}
	case modeTrueMotion:
		predictTrueMotion(p, at, side)
	}
}

// mean is that of the neighbours that there are of side×side pixels.
func (p *plane) mean(at, side int, hasLeft, hasAbove bool) byte {
	sum, n := 0, 0
	if hasAbove {
		for _, v := range p.samples[at-p.stride:][:side] {
			sum += int(v)
		}
		n += side
	}
	if hasLeft {
		for y := range side {
			sum += int(p.samples[at+y*p.stride-1])
		}
		n += side
	}
	if n == 0 {
		return 128
	}
	return byte(uint32(sum+n/2) >> bits.TrailingZeros(uint(n))) // n is a power of two
}

func fillSquare(p *plane, at, side int, v byte) {
	for y := range side {
		fill(p.samples[at+y*p.stride:][:side], v)
	}
}

// predictTrueMotion continues from left to right what the row above does.
func predictTrueMotion(p *plane, at, side int) {
	above, corner := p.samples[at-p.stride:][:side], int32(p.samples[at-p.stride-1])
	for y := range side {
		row := p.samples[at+y*p.stride-1:][:side+1]
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

// predictBlock fills 4×4 pixels at a place of a plane (section 12.3).
func predictBlock(p *plane, at int, mode uint8) {
	switch mode {
	case modeDC:
		fillSquare(p, at, blockSide, p.mean(at, blockSide, true, true))
	case modeTrueMotion:
		predictTrueMotion(p, at, blockSide)
	default:
		predictDirection(p, at, &directions[mode])
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

// predictDirection fills 4×4 pixels with means of those around them.
func predictDirection(p *plane, at int, direction *[16]uint8) {
	var e [15]int32 // pixel i is e[i+1]
	for i := range 4 {
		e[1+i] = int32(p.samples[at+(3-i)*p.stride-1])
	}
	for i, v := range p.samples[at-p.stride-1:][:9] {
		e[5+i] = int32(v)
	}
	e[0], e[14] = e[1], e[13]
	var means [pair + 13]byte
	for i := range 13 {
		means[i], means[pair+i] = mean3(e[i], e[i+1], e[i+2]), mean2(e[i], e[i+1])
	}
	for i, m := range direction {
		p.samples[at+i/4*p.stride+i%4] = means[m]
	}
}

// rows say how the assembly predicts rows of 16 pixels: of each pixel from, and of what the left neighbour of its row has more than the corner, each of which
// counts as 0 without its mask.
type rows struct {
	from         [16]byte
	left, corner uint8 // masks
}

// predict sets what of rows, which were zero, is of a macroblock at a place of a plane: from a column on.
func (r *rows) predict(p *plane, at int, mode uint8, column int, hasLeft, hasAbove bool) {
	from := r.from[column:][:p.side]
	switch mode {
	case modeDC:
		fill(from, p.mean(at, p.side, hasLeft, hasAbove))
	case modeVertical, modeTrueMotion:
		copy(from, p.samples[at-p.stride:])
	}
	if mode == modeHorizontal || mode == modeTrueMotion {
		r.left = 255
	}
	if mode == modeTrueMotion {
		r.corner = 255
	}
}

// predictor says how the assembly predicts 4×4 pixels, by numbers of what each of them is: a mean of three, a mean of two, of TrueMotion, or the mean of all
// eight neighbours. Numbers from none on name nothing.
type predictor struct{ threes, pairs, motion, mean [16]uint8 }

const none = 128

// predictors are those of all modes.
var predictors [blockModes]predictor

func init() {
	for mode := range predictors {
		p := &predictors[mode]
		for i := range 16 {
			p.threes[i], p.pairs[i], p.motion[i], p.mean[i] = none, none, 0, none
			switch m := directions[mode][i]; {
			case mode == modeDC:
				p.mean[i] = 0
			case mode == modeTrueMotion:
				p.motion[i] = 255
			case m < pair:
				p.threes[i] = m
			default:
				p.pairs[i] = m - pair
			}
		}
	}
}
