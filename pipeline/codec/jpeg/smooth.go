package jpeg

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// smoother repeats libjpeg's block smoothing (jdcoefct.c), which guesses the low coefficients that a progressive file has not sent from the first
// coefficients of the blocks around, so that a file cut short shows no edges of blocks.
type smoother struct {
	on     bool
	frame  *frame
	once   bool // the file has one scan
	good   int  // rows of MCUs behind this one have data of the scans before the last one only
	copies [maxComponents][]kernel.Block
}

// smoothReach is how many blocks a guess looks aside, and so, at most, how many MCUs.
const smoothReach = 2

// weights say how much each of 5 x 5 neighbours counts, row by row, in 256ths, once the quantisers are taken out.
type weights [25]int

// The weights for the coefficients 1 to 9 in the order of the file, and 0, where none of 1 to 9 has been sent.
var blindWeights = [10]weights{
	{-2, -6, -8, -6, -2, -6, 6, 42, 6, -6, -8, 42, 152, 42, -8, -6, 6, 42, 6, -6, -2, -6, -8, -6, -2},
	{-1, -1, 0, 1, 1, -3, 13, 0, -13, 3, -3, 38, 0, -38, 3, -3, 13, 0, -13, 3, -1, -1, 0, 1, 1},
	{-1, -3, -3, -3, -1, -1, 13, 38, 13, -1, 0, 0, 0, 0, 0, 1, -13, -38, -13, 1, 1, 3, 3, 3, 1},
	{0, 0, 1, 0, 0, 0, 2, 7, 2, 0, 0, -5, -14, -5, 0, 0, 2, 7, 2, 0, 0, 0, 1, 0, 0},
	{-1, 0, 0, 0, 1, 0, 9, 0, -9, 0, 0, 0, 0, 0, 0, 0, -9, 0, 9, 0, 1, 0, 0, 0, -1},
	{0, 0, 0, 0, 0, 0, 2, -5, 2, 0, 1, 7, -14, 7, 1, 0, 2, -5, 2, 0, 0, 0, 0, 0, 0},
	{0, 0, 0, 0, 0, 0, 1, 0, -1, 0, 0, 2, 0, -2, 0, 0, 1, 0, -1, 0, 0, 0, 0, 0, 0},
	{0, 0, 0, 0, 0, 0, 1, -3, 1, 0, 0, 0, 0, 0, 0, 0, -1, 3, -1, 0, 0, 0, 0, 0, 0},
	{0, 0, 0, 0, 0, 0, 1, 0, -1, 0, 0, -3, 0, 3, 0, 0, 1, 0, -1, 0, 0, 0, 0, 0, 0},
	{0, 0, 0, 0, 0, 0, 1, 2, 1, 0, 0, 0, 0, 0, 0, 0, -1, -2, -1, 0, 0, 0, 0, 0, 0},
}

// The weights for the coefficients 1 to 5 where some of 1 to 9 have been sent.
var sightedWeights = [6]weights{
	1: {10: -7, 11: 50, 13: -50, 14: 7},
	2: {2: -7, 7: 50, 17: -50, 22: 7},
	3: {2: -1, 7: 13, 12: -24, 17: 13, 22: -1},
	4: {1: -1, 3: 1, 5: -1, 6: 10, 8: -10, 9: 1, 15: 1, 16: -10, 18: 10, 19: -1, 21: 1, 23: -1},
	5: {10: -1, 11: 13, 12: -24, 13: 13, 14: -1},
}

func (s *smoother) begin(f *frame, once bool, good int) { s.frame, s.once, s.good = f, once, good }

// blocks are smoothed copies of the blocks of r of a component, one row of MCUs at most.
func (s *smoother) blocks(comp int, g *grid, r image.Rectangle) blocks {
	c := &s.frame.comps[comp]
	out := blocks{stride: even(r.Dx())}
	s.copies[comp] = zeroed(s.copies[comp], out.stride*r.Dy())
	out.b = s.copies[comp]
	known := s.known(c, r.Min.Y/c.v)
	for y := r.Min.Y; y < min(r.Max.Y, c.blocksY); y++ {
		rows := s.rows(c, y, g)
		for x := r.Min.X; x < min(r.Max.X, c.blocksX); x++ {
			b := &out.b[(y-r.Min.Y)*out.stride+x-r.Min.X]
			*b = rows[2][x-g.area.Min.X]
			guess(b, c, known, neighbours(&rows, c, x, g.area.Min.X))
		}
	}
	return out
}

// known is what has been sent of a component in a row of MCUs.
func (s *smoother) known(c *component, mcuRow int) *accuracy {
	switch {
	case mcuRow <= s.good:
		return &c.known
	case s.once:
		return &unknown
	default:
		return &c.before
	}
}

// rows are the rows of blocks around row y. Rows beyond the picture repeat those at its edge. libjpeg counts the rows with the
// height of the MCU row at hand, so that a lower last one looks at none beneath its first, and the one above may see
// the padding between them.
func (s *smoother) rows(c *component, y int, g *grid) [5][]kernel.Block {
	height, mcuRow := c.v, y/c.v
	if mcuRow == s.frame.mcusY-1 && c.blocksY%c.v != 0 {
		height = c.blocksY % c.v
	}
	at, n := mcuRow*height+y%c.v, s.frame.mcusY*height
	above, below := min(at, 2), min(n-1-at, 2)
	return [5][]kernel.Block{
		g.row(y - above), g.row(y - min(above, 1)), g.row(y), g.row(y + min(below, 1)), g.row(y + below),
	}
}

// neighbours are the first coefficients around block x of rows that begin with block left.
func neighbours(rows *[5][]kernel.Block, c *component, x, left int) (dc [25]int) {
	for i, row := range rows {
		for j := range 5 {
			at := max(0, min(x+j-2, c.blocksX-1))
			dc[5*i+j] = int(row[at-left][0])
		}
	}
	return dc
}

// guess fills in coefficients of b that are zero and not known exactly.
func guess(b *kernel.Block, c *component, known *accuracy, dc [25]int) {
	table, blind := sightedWeights[:], *known == blindly(known[0])
	if blind {
		table = blindWeights[:]
	}
	for k := 1; k < len(table); k++ {
		if at := zigzag[k]; known[k] != 0 && b[at] == 0 {
			b[at] = table[k].estimate(&dc, int(c.q[0]), int(c.q[at]), known[k])
		}
	}
	if blind {
		b[0] = table[0].estimate(&dc, int(c.q[0]), int(c.q[0]), 0)
	}
}

// blindly is the accuracy of a component of which first coefficients alone have come.
func blindly(first int8) accuracy {
	a := unknown
	a[0] = first
	return a
}

// estimate is the guess for a coefficient whose quantiser is q, quantised, rounded, and less than what would have been sent.
func (w *weights) estimate(dc *[25]int, q0, q int, missing int8) int16 {
	sum := 0
	for i, v := range dc {
		sum += w[i] * v
	}
	sum *= q0
	v := (q<<7 + max(sum, -sum)) / (q << 8)
	if missing > 0 {
		v = min(v, 1<<missing-1)
	}
	if sum < 0 {
		v = -v
	}
	return int16(v)
}
