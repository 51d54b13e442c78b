package augment

import (
	"image"
	"math"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// The warps of this file are torchvision's for 8-bit tensors: a grid of positions from −1 to 1 in float32, and grid_sample. Both fuse what
// they multiply and add. Of the grid, which is a matrix product of MKL's, that holds for Intel's processors; elsewhere MKL may round
// in between, and torchvision's last bits are others.

// tensorWarp is what the tweak of a warp does to a tensor of that size. The effect has none for a picture that stays as it is.
func (t tweak) tensorWarp(b brush, size image.Point) effect {
	m, a := t.Magnitude, affinity{scale: 1}
	center := &[2]float64{}
	switch t.Name {
	case "ShearX":
		a.shear[0] = degrees(atan(m))
		center = &[2]float64{-float64(size.X) * 0.5, -float64(size.Y) * 0.5}
	case "ShearY":
		a.shear[1] = degrees(atan(m))
		center = &[2]float64{-float64(size.X) * 0.5, -float64(size.Y) * 0.5}
	case "TranslateX":
		a.translate[0] = int(m)
	case "TranslateY":
		a.translate[1] = int(m)
	case "Rotate":
		angle := modulo360(m)
		switch {
		case angle == 0:
			return effect{}
		case angle == 90 && size.X == size.Y, angle == 270 && size.X == size.Y:
			return quarter(angle)
		}
		a.angle = -angle
	}
	return warpTensor(a.inverse(center), b, size)
}

// warpTensor is torchvision's affine_image, of a matrix around the middle. fill is null or a colour, which differ.
func warpTensor(m matrix, b brush, size image.Point) effect {
	e := effect{across: gridNearest}
	if b.interpolation == "bilinear" {
		e.across = gridBilinear
	}
	for i := range 3 {
		e.numbers[i] = float64(float32(m[i]) / float32(0.5*float64(size.X)))
		e.numbers[3+i] = float64(float32(m[3+i]) / float32(0.5*float64(size.Y)))
	}
	if b.fill != nil {
		e.numbers[7] = 1
		copy(e.numbers[8:], b.fill[:])
	}
	return e
}

// A grid is a matrix in float32, and the halves of a picture's sides.
type grid struct {
	t            [6]float32
	halfW, halfH float32
}

func (e *effect) grid(src *pixel.Image) (g grid) {
	for i := range g.t {
		g.t[i] = float32(e.numbers[i])
	}
	g.halfW, g.halfH = float32(src.W)/2, float32(src.H)/2
	return g
}

// at is where pixel u, v of the result, counted from the middle, comes from: in pixels, whose middles are whole numbers.
func (g *grid) at(u, v float32) (x, y float32) {
	x = float32(float64(float32(u*g.t[0]))+float64(float64(v)*float64(g.t[1]))) + g.t[2] + 1
	y = float32(float64(float32(u*g.t[3]))+float64(float64(v)*float64(g.t[4]))) + g.t[5] + 1
	return float32(float64(float64(x)*float64(g.halfW)) - 0.5), float32(float64(float64(y)*float64(g.halfH)) - 0.5)
}

// first is the first pixel of n, counted from the middle.
func first(n int) float32 { return float32((1 - float64(n)) * 0.5) }

func gridNearest(e *effect, _ *workspace, dst, src *pixel.Image) {
	g, c := e.grid(src), [3]byte{toEven(float32(e.numbers[8])), toEven(float32(e.numbers[9])), toEven(float32(e.numbers[10]))}
	u0, v := first(dst.W), first(dst.H)
	for j := range dst.H {
		row := rowOf(dst, j)
		for u := u0; len(row) >= 3; u++ {
			x, y := g.at(u, v)
			out := row[:3]
			row = row[3:]
			i, k := math.RoundToEven(float64(x)), math.RoundToEven(float64(y))
			if !(i >= 0 && i < float64(src.W) && k >= 0 && k < float64(src.H)) {
				out[0], out[1], out[2] = c[0], c[1], c[2]
				continue
			}
			p := src.Pix[int(k)*src.Stride+3*int(i):][:3]
			out[0], out[1], out[2] = p[0], p[1], p[2]
		}
		v++
	}
}

func gridBilinear(e *effect, _ *workspace, dst, src *pixel.Image) {
	g, filled := e.grid(src), e.numbers[7] != 0
	fill := [3]float32{float32(e.numbers[8]), float32(e.numbers[9]), float32(e.numbers[10])}
	u0, v := first(dst.W), first(dst.H)
	for j := range dst.H {
		row := rowOf(dst, j)
		for u := u0; len(row) >= 3; u++ {
			x, y := g.at(u, v)
			out := row[:3]
			row = row[3:]
			if !(x > -1 && x < float32(src.W) && y > -1 && y < float32(src.H)) {
				out[0], out[1], out[2] = toEven(fill[0]), toEven(fill[1]), toEven(fill[2])
				continue
			}
			west, north := floor32(x), floor32(y)
			s := sharesOf(x-float32(west), y-float32(north))
			if west >= 0 && west < src.W-1 && north >= 0 && north < src.H-1 {
				o := north*src.Stride + 3*west
				p, q := src.Pix[o:][:6], src.Pix[o+src.Stride:][:6]
				out[0] = toEven(s.mix(p[0], p[3], q[0], q[3]))
				out[1] = toEven(s.mix(p[1], p[4], q[1], q[4]))
				out[2] = toEven(s.mix(p[2], p[5], q[2], q[5]))
				if !filled {
					continue
				}
			}
			s.atEdge(out, src, west, north, filled, &fill)
		}
		v++
	}
}

// foursome are the shares of four neighbours: north west, north east, south west, south east.
type foursome [4]float32

func sharesOf(w, n float32) foursome {
	return foursome{float32((1 - n) * (1 - w)), float32((1 - n) * w), float32(n * (1 - w)), float32(n * w)}
}

func (s *foursome) mix(a, b, c, d byte) float32 {
	z := float32(s[0] * float32(a))
	z = float32(float64(z) + float64(float64(s[1])*float64(b)))
	z = float32(float64(z) + float64(float64(s[2])*float64(c)))
	return float32(float64(z) + float64(float64(s[3])*float64(d)))
}

// atEdge makes a pixel that some neighbours may miss. With a fill, the part that the others have goes over it: it may be below 1 by rounding alone.
func (s *foursome) atEdge(out []byte, src *pixel.Image, west, north int, filled bool, fill *[3]float32) {
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
		z := s.mix(taps[0][c], taps[1][c], taps[2][c], taps[3][c])
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
