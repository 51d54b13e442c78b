package raster

import (
	"math"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// A grid is a matrix in float32, and the halves of a picture's sides.
type grid struct {
	t            [6]float32
	deep         bool // a perspective, whose points are divided by lx·u + ly·v + 1
	lx, ly       float32
	halfW, halfH float32
}

func (e *Effect) makeGrid(src *pixel.Image) (g grid) {
	for i := range g.t {
		g.t[i] = float32(e.Numbers[i])
	}
	g.deep, g.lx, g.ly = e.Numbers[6] != 0, float32(e.Numbers[11]), float32(e.Numbers[12])
	g.halfW, g.halfH = float32(src.W)/2, float32(src.H)/2
	return g
}

// mapRow returns where row j of dst comes from. Rows and columns are counted from the middle; for a perspective from
// the upper left corner.
func (g *grid) mapRow(w *Workspace, dst *pixel.Image, j int) []sourcePoint32 {
	w.points = slices.Grow(w.points[:0], dst.W)[:dst.W]
	u, v := firstCoordinate(dst.W), firstCoordinate(dst.H)+float32(j)
	if g.deep {
		u, v = 0.5, float32(j)+0.5
	}
	for i := range w.points {
		p := &w.points[i]
		p.x, p.y = fusePair(u, v, g.t[0], g.t[1], g.t[2]), fusePair(u, v, g.t[3], g.t[4], g.t[5])
		if g.deep {
			depth := fusePair(u, v, g.lx, g.ly, 1)
			p.x, p.y = p.x/depth-1, p.y/depth-1
		}
		p.x, p.y = inPixels(p.x, g.halfW), inPixels(p.y, g.halfH)
		u++
	}
	return w.points
}

// fusePair is u·a + v·b + c, as a matrix product adds it up.
func fusePair(u, v, a, b, c float32) float32 {
	return fuseMultiplyAdd(v, b, float32(u*a)) + c
}

// fuseMultiplyAdd is order.Fused for normal numbers.
func fuseMultiplyAdd(x, y, z float32) float32 {
	sum := float64(z) + float64(float64(x)*float64(y))
	if math.Float64bits(sum)&(1<<29-1) == 1<<28 {
		return order.Fused(x, y, z) // a tie, which may be none before the rounding to float64
	}
	return float32(sum)
}

// inPixels is a place from −1 to 1 in pixels of a side.
func inPixels(x, half float32) float32 { return float32(float64(float64(x+1)*float64(half)) - 0.5) }

// firstCoordinate is the first pixel of n, counted from the middle.
func firstCoordinate(n int) float32 { return float32((1 - float64(n)) * 0.5) }

func gridNearest(e *Effect, w *Workspace, dst, src *pixel.Image) {
	g, c := e.makeGrid(src), e.paintTensor()
	for j := range dst.H {
		sampleNearest(dst.Row(j), src, g.mapRow(w, dst, j), c)
	}
}

func gridBilinear(e *Effect, w *Workspace, dst, src *pixel.Image) {
	g, f := e.makeGrid(src), e.fillTensor()
	for j := range dst.H {
		f.sampleBilinear(dst.Row(j), src, g.mapRow(w, dst, j))
	}
}

// paintTensor is the colour outside of the picture.
func (e *Effect) paintTensor() [3]byte {
	return [3]byte{toEven(float32(e.Numbers[8])), toEven(float32(e.Numbers[9])), toEven(float32(e.Numbers[10]))}
}

// sampleNearest makes a row of the pixels nearest to points, and of c outside.
func sampleNearest(row []byte, src *pixel.Image, points []sourcePoint32, c [3]byte) {
	for _, p := range points {
		out := row[:3]
		row = row[3:]
		i, k := math.RoundToEven(float64(p.x)), math.RoundToEven(float64(p.y))
		if !(i >= 0 && i < float64(src.W) && k >= 0 && k < float64(src.H)) {
			out[0], out[1], out[2] = c[0], c[1], c[2]
			continue
		}
		q := src.Pix[int(k)*src.Stride+3*int(i):][:3]
		out[0], out[1], out[2] = q[0], q[1], q[2]
	}
}

// fillTensor is what a bilinear warp paints: none, which fades to black, or a colour.
type fillTensor struct {
	given bool
	fill  [3]float32
	paint [3]byte
}

func (e *Effect) fillTensor() fillTensor {
	fill := [3]float32{float32(e.Numbers[8]), float32(e.Numbers[9]), float32(e.Numbers[10])}
	return fillTensor{e.Numbers[7] != 0, fill, e.paintTensor()}
}

// sampleBilinear makes a row of what lies at points.
func (f *fillTensor) sampleBilinear(row []byte, src *pixel.Image, points []sourcePoint32) {
	for _, p := range points {
		out := row[:3]
		row = row[3:]
		x, y := p.x, p.y
		if !(x > -1 && x < float32(src.W) && y > -1 && y < float32(src.H)) {
			c := f.paint
			if x-x != 0 || y-y != 0 { // at the horizon of a perspective: torch's shares are no numbers there, which it makes 0 of
				c = [3]byte{}
			}
			out[0], out[1], out[2] = c[0], c[1], c[2]
			continue
		}
		west, north := floor32(x), floor32(y)
		s := weightsOf(x-float32(west), y-float32(north))
		if west >= 0 && west < src.W-1 && north >= 0 && north < src.H-1 {
			o := north*src.Stride + 3*west
			p, q := src.Pix[o:][:6], src.Pix[o+src.Stride:][:6]
			out[0] = toEven(s.mixValues(p[0], p[3], q[0], q[3]))
			out[1] = toEven(s.mixValues(p[1], p[4], q[1], q[4]))
			out[2] = toEven(s.mixValues(p[2], p[5], q[2], q[5]))
			if !f.given {
				continue
			}
		}
		s.mixAtEdge(out, src, west, north, f.given, &f.fill)
	}
}

// bilinearWeights are the shares of four neighbours: north west, north east, south west, south east.
type bilinearWeights [4]float32

func weightsOf(w, n float32) bilinearWeights {
	return bilinearWeights{float32((1 - n) * (1 - w)), float32((1 - n) * w), float32(n * (1 - w)), float32(n * w)}
}

func (s *bilinearWeights) mixValues(a, b, c, d byte) float32 {
	z := float32(s[0] * float32(a))
	z = float32(float64(z) + float64(float64(s[1])*float64(b)))
	z = float32(float64(z) + float64(float64(s[2])*float64(c)))
	return float32(float64(z) + float64(float64(s[3])*float64(d)))
}

// mixAtEdge makes a pixel that some neighbours may miss. With a fill, the part that the others have goes over it: it
// may be below 1 by rounding alone.
func (s *bilinearWeights) mixAtEdge(out []byte, src *pixel.Image, west, north int, filled bool, fill *[3]float32) {
	var taps [4][3]byte
	mask := float32(0)
	for k := range taps {
		x, y := west+k&1, north+k>>1
		if x >= 0 && x < src.W && y >= 0 && y < src.H {
			taps[k] = [3]byte(src.Pix[y*src.Stride+3*x:])
			mask += s[k]
		}
	}
	for c := range 3 {
		z := s.mixValues(taps[0][c], taps[1][c], taps[2][c], taps[3][c])
		if filled {
			z = float32(float32(z-fill[c])*mask) + fill[c]
		}
		out[c] = toEven(z)
	}
}

// floor32 is for x > −2³¹.
func floor32(x float32) int {
	i := int(x)
	if x < float32(i) {
		i--
	}
	return i
}

func toEven(x float32) byte { return byte(int32(math.RoundToEven(float64(x)))) }
