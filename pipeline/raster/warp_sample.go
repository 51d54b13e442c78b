package raster

import (
	"encoding/binary"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// mapRow returns where row j comes from: the middles of its n pixels, through the matrix.
func (e *Effect) mapRow(w *Workspace, j, n int) []sourcePoint64 {
	w.spots = slices.Grow(w.spots[:0], n)[:n]
	m, v := &e.Numbers, float64(j)+0.5
	rowX, rowY, rowD := float64(m[1]*v), float64(m[4]*v), float64(m[7]*v)
	for i := range w.spots {
		u := float64(i) + 0.5
		w.spots[i] = sourcePoint64{float64(m[0]*u) + rowX + m[2], float64(m[3]*u) + rowY + m[5]}
	}
	if m[6] == 0 && m[7] == 0 {
		return w.spots
	}
	for i := range w.spots {
		d := float64(m[6]*(float64(i)+0.5)) + rowD + 1
		s := &w.spots[i]
		s.x, s.y = s.x/d, s.y/d
	}
	return w.spots
}

// isInside reports whether a point lies in a w×h picture.
func (s sourcePoint64) isInside(w, h float64) bool { return s.x >= 0 && s.x < w && s.y >= 0 && s.y < h }

// splitCoordinate is the first of the two pixels that a place on an axis lies between, and how far behind it that is,
// from 0 to 1.
func splitCoordinate(x float64) (first int, share float64) {
	x -= 0.5
	first = int(x)
	if x < 0 {
		first = -1
	}
	return first, x - float64(first)
}

// clampIndex is the nearest index of n.
func clampIndex(i, n int) int { return min(max(i, 0), n-1) }

// warpNearest takes the pixel that each point lies in. It makes them as it goes: a list of them first takes 1.7 times
// as long.
func warpNearest(e *Effect, _ *Workspace, dst, src *pixel.Image) {
	c, w, h, m := e.paintColour(), float64(src.W), float64(src.H), &e.Numbers
	m0, m2, m3, m5, m6 := m[0], m[2], m[3], m[5], m[6]
	for j := range dst.H {
		row := dst.Pix[j*dst.Stride:][:3*dst.W]
		v := float64(j) + 0.5
		rowX, rowY, rowD := float64(m[1]*v), float64(m[4]*v), float64(m[7]*v)
		for u := 0.5; len(row) >= 3; u++ {
			out := row[:3]
			row = row[3:]
			d := float64(m6*u) + rowD + 1
			s := sourcePoint64{(float64(m0*u) + rowX + m2) / d, (float64(m3*u) + rowY + m5) / d}
			if !s.isInside(w, h) {
				out[0], out[1], out[2] = c[0], c[1], c[2]
				continue
			}
			p := src.Pix[int(s.y)*src.Stride+3*int(s.x):][:3]
			out[0], out[1], out[2] = p[0], p[1], p[2]
		}
	}
}

// interpolateLinear is a+(b−a)·t.
func interpolateLinear(a, b, t float64) float64 { return a + float64((b-a)*t) }

// mixNeighbours is the same for 8-bit values, as mixed 24 bits apart in a word: 6 bytes are two pixels.
func mixNeighbours(w uint64, t float64) float64 {
	a, b := int32(w&255), int32(w>>24&255) //nolint:gosec // 8 bits
	return float64(a) + float64(float64(b-a)*t)
}

// warpBilinear mixes the four pixels around each point, along x first.
func warpBilinear(e *Effect, ws *Workspace, dst, src *pixel.Image) {
	c, w, h := e.paintColour(), float64(src.W), float64(src.H)
	pix, stride := src.Pix, src.Stride
	for j := range dst.H {
		row := dst.Pix[j*dst.Stride:][:3*dst.W]
		for _, s := range e.mapRow(ws, j, dst.W) {
			if len(row) < 3 {
				break
			}
			out := row[:3]
			row = row[3:]
			if !s.isInside(w, h) {
				out[0], out[1], out[2] = c[0], c[1], c[2]
				continue
			}
			x, dx := splitCoordinate(s.x)
			y, dy := splitCoordinate(s.y)
			var upper, lower uint64
			if x >= 0 && x < src.W-1 && y >= 0 && y < src.H-1 {
				o := y*stride + 3*x
				upper, lower = binary.LittleEndian.Uint64(pix[o:]), binary.LittleEndian.Uint64(pix[o+stride:])
			} else {
				upper, lower = atEdge(src, x, clampIndex(y, src.H)), atEdge(src, x, clampIndex(y+1, src.H))
			}
			out[0] = byte(int32(interpolateLinear(mixNeighbours(upper, dx), mixNeighbours(lower, dx), dy)))
			out[1] = byte(int32(interpolateLinear(mixNeighbours(upper>>8, dx), mixNeighbours(lower>>8, dx), dy)))
			out[2] = byte(int32(interpolateLinear(mixNeighbours(upper>>16, dx), mixNeighbours(lower>>16, dx), dy)))
		}
	}
}

// atEdge returns the pixels x and x+1 of row y, or the nearest that there are.
func atEdge(src *pixel.Image, x, y int) uint64 {
	line := src.Pix[y*src.Stride:]
	a := binary.LittleEndian.Uint32(line[3*clampIndex(x, src.W):])
	b := binary.LittleEndian.Uint32(line[3*clampIndex(x+1, src.W):])
	return uint64(a&0xffffff) | uint64(b)<<24
}

// interpolateCubic is the cubic through b and c at t, with the slopes (c−a) and (d−b).
func interpolateCubic(a, b, c, d, t float64) float64 {
	p2, p3, p4 := c-a, 2*(a-b)+c-d, b-a-c+d
	return b + float64(t*(p2+float64(t*(p3+float64(t*p4)))))
}

// warpBicubic mixes the sixteen pixels around each point, along x first.
func warpBicubic(e *Effect, ws *Workspace, dst, src *pixel.Image) {
	paint, w, h := e.paintColour(), float64(src.W), float64(src.H)
	for j := range dst.H {
		row := dst.Pix[j*dst.Stride:][:3*dst.W]
		for _, s := range e.mapRow(ws, j, dst.W) {
			out := row[:3]
			row = row[3:]
			if !s.isInside(w, h) {
				out[0], out[1], out[2] = paint[0], paint[1], paint[2]
				continue
			}
			x, dx := splitCoordinate(s.x)
			y, dy := splitCoordinate(s.y)
			var v [3][4]float64
			if x >= 1 && x < src.W-2 && y >= 1 && y < src.H-2 {
				cubicRows(&v, src.Pix[(y-1)*src.Stride+3*(x-1):], src.Stride, dx)
			} else {
				cubicRowsAtEdge(&v, src, x, y, dx)
			}
			for i := range out {
				z := interpolateCubic(v[i][0], v[i][1], v[i][2], v[i][3], dy)
				out[i] = byte(int32(min(max(z, 0), 255)))
			}
		}
	}
}

// cubicRows mixes four rows of four pixels each, the first of them at pix, along x: channel c of row k is v[c][k].
func cubicRows(v *[3][4]float64, pix []byte, stride int, dx float64) {
	for k := range 4 {
		p := pix[k*stride:][:12]
		v[0][k] = interpolateCubic(float64(p[0]), float64(p[3]), float64(p[6]), float64(p[9]), dx)
		v[1][k] = interpolateCubic(float64(p[1]), float64(p[4]), float64(p[7]), float64(p[10]), dx)
		v[2][k] = interpolateCubic(float64(p[2]), float64(p[5]), float64(p[8]), float64(p[11]), dx)
	}
}

// cubicRowsAtEdge is cubicRows around x, y, where some pixels are the nearest that there are.
func cubicRowsAtEdge(v *[3][4]float64, src *pixel.Image, x, y int, dx float64) {
	var at [4]int
	for k := range at {
		at[k] = 3 * clampIndex(x+k-1, src.W)
	}
	for k := range 4 {
		line := src.Pix[clampIndex(y+k-1, src.H)*src.Stride:]
		a, b := line[at[0]:][:3], line[at[1]:][:3]
		c, d := line[at[2]:][:3], line[at[3]:][:3]
		for i := range v {
			v[i][k] = interpolateCubic(float64(a[i]), float64(b[i]), float64(c[i]), float64(d[i]), dx)
		}
	}
}
