package jpegtest

import "github.com/feedwater-io/feedwater/pipeline/pixel"

// split gives the planes of a picture at full size: RGB, YCbCr or, of one component, its brightness. A fourth one is half the
// brightness of the pixel that lies opposite.
func split(m *pixel.Image, rgb bool, n int) [][]byte {
	planes := make([][]byte, 4)
	for i := range planes {
		planes[i] = make([]byte, m.W*m.H)
	}
	for y := range m.H {
		for x := range m.W {
			p := m.Pix[y*m.Stride+3*x:]
			c := [3]byte{p[0], p[1], p[2]}
			if !rgb {
				c = ycc(int(p[0]), int(p[1]), int(p[2]))
			}
			for i := range 3 {
				planes[i][y*m.W+x] = c[i]
			}
			p = m.Pix[(m.H-1-y)*m.Stride+3*(m.W-1-x):]
			planes[3][y*m.W+x] = ycc(int(p[0]), int(p[1]), int(p[2]))[0]/2 + 99
		}
	}
	return planes[:n]
}

// ycc is the conversion of JFIF with 16 fractional bits.
func ycc(r, g, b int) [3]byte {
	y := (19595*r + 38470*g + 7471*b + 32768) >> 16
	cb := (-11059*r - 21709*g + 32768*b + 128<<16 + 32767) >> 16
	cr := (32768*r - 27439*g - 5329*b + 128<<16 + 32767) >> 16
	return [3]byte{byte(y), byte(min(255, cb)), byte(min(255, cr))}
}

// transform makes the quantised blocks of a component. Behind the edges of the picture samples repeat.
func (e *encoder) transform(plane []byte, s Factors, q *[64]uint16) component {
	w, h := ceilDiv(e.w*s[0], e.hMax), ceilDiv(e.h*s[1], e.vMax)
	small := e.shrink(plane, s, w, h)
	c := component{h: s[0], v: s[1], stride: e.mcusX * s[0], blocksX: ceilDiv(w, 8), blocksY: ceilDiv(h, 8)}
	c.blocks = make([][64]int16, c.stride*e.mcusY*s[1])
	for i := range c.blocks {
		var b [64]int32
		x0, y0 := i%c.stride*8, i/c.stride*8
		for j := range b {
			x, y := min(x0+j%8, w-1), min(y0+j/8, h-1)
			b[j] = int32(small[y*w+x]) - 128
		}
		forward(&b)
		quantise(&c.blocks[i], &b, q)
	}
	return c
}

// shrink averages the pixels that fall on each of w x h samples. Where the factors do not divide each other it takes
// the nearest whole number of pixels.
func (e *encoder) shrink(plane []byte, s Factors, w, h int) []byte {
	fx, fy := e.hMax/s[0], e.vMax/s[1]
	if fx == 1 && fy == 1 && w == e.w && h == e.h {
		return plane
	}
	small := make([]byte, w*h)
	for i := range small {
		x0, y0 := i%w*e.hMax/s[0], i/w*e.vMax/s[1]
		sum := fx * fy / 2
		for j := range fx * fy {
			x, y := min(x0+j%fx, e.w-1), min(y0+j/fx, e.h-1)
			sum += int(plane[y*e.w+x])
		}
		small[i] = byte(sum / (fx * fy))
	}
	return small
}

// cosines[u] are the factors of the first four samples in coefficient u, cos((2x+1)u*pi/16) / 2 or / sqrt(8) for u = 0, with
// 13 fractional bits; the other four are the same in reverse, negative for odd u.
var cosines = [8][4]int32{
	{2896, 2896, 2896, 2896},
	{4017, 3406, 2276, 799},
	{3784, 1567, -1567, -3784},
	{3406, -799, -4017, -2276},
	{2896, -2896, -2896, 2896},
	{2276, -4017, 799, 3406},
	{1567, -3784, 3784, -1567},
	{799, -2276, 3406, -4017},
}

// forward is the cosine transform of a block, the result with 3 fractional bits.
func forward(b *[64]int32) {
	line := func(at, step int, shift uint) {
		var sum, diff [4]int32
		for i := range 4 {
			u, v := b[at+i*step], b[at+(7-i)*step]
			sum[i], diff[i] = u+v, u-v
		}
		for u, c := range cosines {
			x := &sum
			if u&1 != 0 {
				x = &diff
			}
			v := c[0]*x[0] + c[1]*x[1] + c[2]*x[2] + c[3]*x[3]
			b[at+u*step] = (v + 1<<(shift-1)) >> shift
		}
	}
	for y := range 8 {
		line(8*y, 1, 10)
	}
	for x := range 8 {
		line(x, 8, 13)
	}
}

// quantise divides and rounds, into the order of the file.
func quantise(out *[64]int16, b *[64]int32, q *[64]uint16) {
	for k, at := range zigzag {
		d := int32(q[at]) * 8
		v := b[at]
		if v < 0 {
			v = -((-v + d/2) / d)
		} else {
			v = (v + d/2) / d
		}
		out[k] = int16(max(-1023, min(1023, v)))
	}
}

// quantTables are the standard's examples, for brightness and colour, scaled to a quality.
func quantTables(quality int) (q [2][64]uint16) {
	scale := 200 - 2*quality
	if quality < 50 {
		scale = 5000 / quality
	}
	for t, base := range [2]*[64]uint16{&luminance, &chrominance} {
		for i, v := range base {
			q[t][i] = uint16(max(1, min(255, (int(v)*scale+50)/100)))
		}
	}
	return q
}
