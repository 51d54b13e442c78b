package raster

import (
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// jpegPlanes is a picture as luma, and chroma of half the size.
type jpegPlanes struct {
	kernels *kernel.JPEG
	planes  [3]samplePlane
	steps   [3][64]uint16  // of quantization
	blocks  []kernel.Block // of a row
	halves  [2][2][]byte   // of chroma, two rows in full width
	rows    [2][]byte      // of chroma, in full size
}

// samplePlane is a plane whose sides are whole blocks, an even number across. A row begins with one more sample, and
// ends with one or more.
type samplePlane struct {
	pix          []byte
	w, h         int // those of the picture
	across, down int // blocks
	stride       int
}

func (s *samplePlane) resetSize(w, h int) {
	s.w, s.h = w, h
	s.across, s.down = (w+15)/16*2, (h+7)/8
	s.stride = 8*s.across + 2
	s.pix = pixel.Grow(s.pix, s.stride*8*s.down)
}

// rowAt has a neighbour on either side.
func (s *samplePlane) rowAt(y int) []byte { return s.pix[y*s.stride:][:s.stride] }

func (c *jpegPlanes) beginPicture(level string, w, h int) {
	if c.kernels == nil {
		c.kernels = kernel.JPEGFor(level)
	}
	c.planes[0].resetSize(w, h)
	c.planes[1].resetSize((w+1)/2, (h+1)/2)
	c.planes[2].resetSize((w+1)/2, (h+1)/2)
	c.blocks = pixel.Grow(c.blocks, c.planes[0].across)
	full := 2 * 8 * c.planes[1].across
	for i := range 2 {
		c.rows[i] = pixel.Grow(c.rows[i], full)
		c.halves[i][0], c.halves[i][1] = pixel.Grow(c.halves[i][0], full), pixel.Grow(c.halves[i][1], full)
	}
}

// splitPixels makes samples of pixels. Behind the picture its last row and column go on.
func (c *jpegPlanes) splitPixels(src *pixel.Image) {
	luma := &c.planes[0]
	for y := range src.H {
		cb, cr := c.halves[y%2][0], c.halves[y%2][1]
		splitRow(luma.rowAt(y)[1:], cb, cr, src.Row(y))
		repeatLast(luma.rowAt(y)[1:], src.W)
		repeatLast(cb, src.W)
		repeatLast(cr, src.W)
		for i, p := range c.planes[1:] {
			switch {
			case y%2 == 1:
				halveRow(p.rowAt(y / 2)[1:][:8*p.across], c.halves[0][i], c.halves[1][i])
			case y == src.H-1:
				halveRow(p.rowAt(y / 2)[1:][:8*p.across], c.halves[0][i], c.halves[0][i])
			}
		}
	}
	for i := range c.planes {
		p := &c.planes[i]
		for y := p.h; y < 8*p.down; y++ {
			copy(p.rowAt(y), p.rowAt(p.h-1))
		}
	}
}

// splitRow is libjpeg's RGB to YCbCr, in 16-bit fixed point.
func splitRow(luma, cb, cr, rgb []byte) {
	const half, middle = 1 << 15, 128 << 16
	n := len(rgb) / 3
	luma, cb, cr = luma[:n], cb[:n], cr[:n]
	for i := range luma {
		p := rgb[3*i : 3*i+3 : 3*i+3]
		r, g, b := int32(p[0]), int32(p[1]), int32(p[2])
		luma[i] = byte((19595*r + 38470*g + 7471*b + half) >> 16)
		cb[i] = byte((32768*b - 11059*r - 21709*g + middle + half - 1) >> 16)
		cr[i] = byte((32768*r - 27439*g - 5329*b + middle + half - 1) >> 16)
	}
}

// repeatLast repeats sample n−1 to the end.
func repeatLast(row []byte, n int) {
	last := row[n-1]
	for i := n; i < len(row); i++ {
		row[i] = last
	}
}

// halveRow makes means of 2×2 samples; in turn, halves and three quarters are rounded up, or halves only.
func halveRow(dst, above, below []byte) {
	above, below = above[:2*len(dst)], below[:2*len(dst)]
	for i := range dst {
		a, b := above[2*i:2*i+2:2*i+2], below[2*i:2*i+2:2*i+2]
		dst[i] = byte((uint32(a[0]) + uint32(a[1]) + uint32(b[0]) + uint32(b[1]) + 1 + uint32(i&1)) >> 2)
	}
}

// quantizeBlocks transforms all blocks, rounds them by q, and transforms them back.
func (s *samplePlane) quantizeBlocks(c *jpegPlanes, q *[64]uint16) {
	by := makeDivisors(q)
	for y := range s.down {
		pix := s.pix[8*y*s.stride+1:]
		for x := range s.across {
			forwardDCT(&c.blocks[x], pix[8*x:], s.stride)
			divideBlock(&c.blocks[x], &by)
		}
		c.kernels.IDCT(pix[:7*s.stride+8*s.across], s.stride, c.blocks[:s.across], q)
	}
	for y := range s.h {
		row := s.rowAt(y)
		row[0], row[s.w+1] = row[1], row[s.w]
	}
}

// joinPlanes makes pixels of samples.
func (c *jpegPlanes) joinPlanes(dst *pixel.Image) {
	for y := range dst.H {
		for i := range 2 {
			c.planes[1+i].doubleRow(c.kernels, c.rows[i], y)
		}
		c.kernels.Color(dst.Row(y), c.planes[0].rowAt(y)[1:][:dst.W], c.rows[0][:dst.W], c.rows[1][:dst.W])
	}
}

// doubleRow makes row y of the plane in double size. What is at most two wide is not smoothed.
func (s *samplePlane) doubleRow(k *kernel.JPEG, dst []byte, y int) {
	near, far := y/2, min(y/2+1, s.h-1)
	if y%2 == 0 {
		far = max(near-1, 0)
	}
	if s.w > 2 {
		k.H2V2(dst[:2*s.w], s.rowAt(near)[:s.w+2], s.rowAt(far)[:s.w+2])
		return
	}
	for i, v := range s.rowAt(near)[1:][:s.w] {
		dst[2*i], dst[2*i+1] = v, v
	}
}
