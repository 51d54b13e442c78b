package webp

import "image"

// planes is a lossy picture. Its chroma has half the size, rounded up.
type planes struct {
	*image.YCbCr
	chroma [2][]byte // room for a row of each, in full size
}

func (p *planes) row(dst []byte, x, y int) {
	n := len(dst) / 3
	cb, cr := p.chroma[0][:n], p.chroma[1][:n]
	p.upsample(cb, p.Cb, x, y)
	p.upsample(cr, p.Cr, x, y)
	luma := p.Y[y*p.YStride+x:][:n]
	for i, v := range luma {
		d := dst[3*i:][:3]
		l, u, v := int(v)*19077>>8, int(cb[i]), int(cr[i])
		d[0] = clip(l + v*26149>>8 - 14234)
		d[1] = clip(l - u*6419>>8 - v*13320>>8 + 8708)
		d[2] = clip(l + u*33050>>8 - 17685)
	}
}

func clip(v int) byte {
	if v >>= 6; uint(v) > 255 {
		return byte(^v >> 63) // all ones above, none below
	}
	return byte(v)
}

// upsample makes row y of full-size chroma from x on. Each value is 9 parts of the nearest sample, 3 of each of the two next to
// it and 1 of the diagonal one, rounded as libwebp does, in two steps; at the left and right edge it is 3 parts and 1 of a
// column.
func (p *planes) upsample(dst, plane []byte, x, y int) {
	rows, w := (p.Rect.Dy()+1)/2, p.Rect.Dx()
	other := y/2 - 1 + y&1*2
	near, far := plane[y/2*p.CStride:], plane[min(max(other, 0), rows-1)*p.CStride:]
	for i := range dst {
		x := x + i
		c := x / 2
		a, b := int(near[c]), int(far[c])
		side := c - 1 + x&1*2
		if side < 0 || x == w-1 && w&1 == 0 {
			dst[i] = byte((3*a + b + 2) >> 2)
			continue
		}
		diagonal := (a + 3*int(near[side]) + 3*b + int(far[side]) + 8) >> 3
		dst[i] = byte((diagonal + a) >> 1)
	}
}
