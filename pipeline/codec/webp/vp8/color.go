package vp8

// Row makes RGB of the pixels of row y from x on, as many as dst has room for.
func (d *Decoder) Row(dst []byte, x, y int) {
	n := len(dst) / 3
	for i := range d.chroma {
		d.chroma[i] = grown(d.chroma[i], 2*d.cb.stride)
	}
	first, last := x/2, (x+n-1)/2
	cb, cr := d.chroma[0], d.chroma[1]
	d.upsample(cb, &d.cb, y, first, last)
	d.upsample(cr, &d.cr, y, first, last)
	luma := d.luma.row(y)[x:][:n]
	d.kernels.color(dst, luma, cb[x:x+n], cr[x:x+n])
}

// upsample makes row y of full-size chroma of samples first to last of a plane. Each value is 9 parts of the nearest sample, 3 of each of the
// two next to it and 1 of the diagonal one, rounded as libwebp does, in two steps; at the left and right edge of the picture it is 3 parts
// and 1 of a column.
func (d *Decoder) upsample(dst []byte, p *plane, y, first, last int) {
	columns, rows := (d.width+1)/2, (d.height+1)/2
	other := min(max(y/2-1+y&1*2, 0), rows-1)
	near, far := p.row(y / 2)[:columns], p.row(other)[:columns]
	if first == 0 {
		dst[0] = edgeSample(near[0], far[0])
		if columns == 1 {
			dst[1] = dst[0]
			return
		}
		dst[1] = sample(near[0], near[1], far[0], far[1])
		first = 1
	}
	if last == columns-1 {
		dst[2*last] = sample(near[last], near[last-1], far[last], far[last-1])
		dst[2*last+1] = edgeSample(near[last], far[last])
		last--
	}
	if n := last + 1 - first; n > 0 {
		d.kernels.upsample(dst[2*first:][:2*n], near[first-1:][:n+2], far[first-1:][:n+2])
	}
}

// sample is a value of full-size chroma: of the nearest sample, that beside it, and those above or below them.
func sample(a, side, b, diagonal byte) byte {
	first := (int(a) + 3*int(side) + 3*int(b) + int(diagonal) + 8) >> 3
	return byte((first + int(a)) >> 1)
}

func edgeSample(a, b byte) byte { return byte((3*int(a) + int(b) + 2) >> 2) }

// upsampleScalar doubles samples, of which near and far have one more at each end.
func upsampleScalar(dst, near, far []byte) {
	for c := 1; c < len(near)-1; c++ {
		dst[2*c-2] = sample(near[c], near[c-1], far[c], far[c-1])
		dst[2*c-1] = sample(near[c], near[c+1], far[c], far[c+1])
	}
}

// colorScalar converts pixels.
func colorScalar(dst, y, cb, cr []byte) {
	for i, v := range y {
		d := dst[3*i:][:3]
		l, u, v := int32(v)*19077>>8, int32(cb[i]), int32(cr[i])
		d[0] = clip((l + v*26149>>8 - 14234) >> 6)
		d[1] = clip((l - u*6419>>8 - v*13320>>8 + 8708) >> 6)
		d[2] = clip((l + u*33050>>8 - 17685) >> 6)
	}
}
