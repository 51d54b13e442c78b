package vp8

// strength is how strongly the edges of macroblocks are filtered (section 15).
type strength struct {
	limit    int32 // of the difference across an edge within; 0: nothing is filtered
	interior int32 // of the differences between pixels on one side
	variance int32 // above which pixels at an edge count as of high variance
	inner    bool  // edges within the macroblock are filtered too
}

// setStrengths finds the strengths of each segment, of macroblocks that are predicted as a whole, and by blocks.
func (d *Decoder) setStrengths() {
	f := &d.filter
	for i := range d.strengths {
		level := f.level
		if s := &d.segment; s.used {
			if level = s.strength[i]; !s.absolute {
				level += f.level
			}
		}
		for byBlocks := range d.strengths[i] {
			of := level
			if f.adjusted {
				of += f.forFrame + f.forBlocks*int32(byBlocks)
			}
			d.strengths[i][byBlocks] = strengthOf(max(0, min(of, 63)), f.sharpness, byBlocks == 1)
		}
	}
}

func strengthOf(level, sharpness int32, inner bool) strength {
	if level == 0 {
		return strength{}
	}
	interior := level
	if sharpness > 0 {
		interior >>= 1
		if sharpness > 4 {
			interior >>= 1
		}
		interior = min(interior, 9-sharpness)
	}
	interior = max(interior, 1)
	variance := int32(0)
	switch {
	case level >= 40:
		variance = 2
	case level >= 15:
		variance = 1
	}
	return strength{2*level + interior, interior, variance, inner}
}

// filterAbove filters the row above one that is made, which was predicted from what it was before.
func (d *Decoder) filterAbove(y int) {
	if y > 0 {
		d.filterRow(y - 1)
	}
}

// filterRow filters the macroblocks of a row.
func (d *Decoder) filterRow(y int) {
	if d.filter.level == 0 {
		return
	}
	for x := range d.columns {
		s := &d.filters[y&1][x]
		if s.limit == 0 {
			continue
		}
		if d.filter.simple {
			d.filterSimply(s, x, y)
		} else {
			d.filterMacroblock(s, x, y)
		}
	}
}

// filterSimply filters luma alone, by the difference across its edges.
func (d *Decoder) filterSimply(s *strength, x, y int) {
	p, stride, at := d.luma.samples, d.luma.stride, d.luma.at(16*x, 16*y)
	if x > 0 {
		simpleEdge(p, at, 1, stride, s.limit+4)
	}
	for i := 4; s.inner && i < 16; i += 4 {
		simpleEdge(p, at+i, 1, stride, s.limit)
	}
	if y > 0 {
		simpleEdge(p, at, stride, 1, s.limit+4)
	}
	for i := 4; s.inner && i < 16; i += 4 {
		simpleEdge(p, at+i*stride, stride, 1, s.limit)
	}
}

// simpleEdge filters 16 places along an edge: across steps over it, along goes on to the next place.
func simpleEdge(p []byte, at, across, along int, limit int32) {
	for range 16 {
		p1, p0, q0, q1 := int32(p[at-2*across]), int32(p[at-across]), int32(p[at]), int32(p[at+across])
		if 4*magnitude(p0-q0)+magnitude(p1-q1) <= 2*limit+1 {
			p[at-across], p[at] = common(p1, p0, q0, q1)
		}
		at += along
	}
}

// filterMacroblock filters luma and chroma.
func (d *Decoder) filterMacroblock(s *strength, x, y int) {
	d.kernels.filterAcross(&d.picture, s, x, y)
	d.kernels.filterDown(&d.picture, s, x, y)
}

// filterAcross filters the vertical edges of a macroblock, but none of the picture's.
func (k *kernels) filterAcross(p *picture, s *strength, x, y int) {
	if k.vector {
		luma, cb, cr := p.macroblock(x, y)
		filterAcross(luma, cb, cr, p.luma.stride, p.cb.stride, &s.limit, x)
		return
	}
	for _, p := range p.planes() {
		scalarEdges(p.samples, p.at(p.side*x, p.side*y), 1, p.stride, p.side, s, x > 0)
	}
}

// filterDown filters the horizontal edges of a macroblock, but none of the picture's.
func (k *kernels) filterDown(p *picture, s *strength, x, y int) {
	if k.vector {
		luma, cb, cr := p.macroblock(x, y)
		filterDown(luma, cb, cr, p.luma.stride, p.cb.stride, &s.limit, y)
		return
	}
	for _, p := range p.planes() {
		scalarEdges(p.samples, p.at(p.side*x, p.side*y), p.stride, 1, p.side, s, y > 0)
	}
}

// scalarEdges filters the edges of a macroblock's n×n pixels in one direction, with outer the first one too.
func scalarEdges(p []byte, at, across, along, n int, s *strength, outer bool) {
	if outer {
		scalarEdge(p, at, across, along, n, s, s.limit+4, false)
	}
	for i := 4; s.inner && i < n; i += 4 {
		scalarEdge(p, at+i*across, across, along, n, s, s.limit, true)
	}
}

// scalarEdge filters n places along an edge.
func scalarEdge(p []byte, at, across, along, n int, s *strength, limit int32, inner bool) {
	for range n {
		p3, p2 := int32(p[at-4*across]), int32(p[at-3*across])
		p1, p0, q0, q1 := int32(p[at-2*across]), int32(p[at-across]), int32(p[at]), int32(p[at+across])
		q2, q3 := int32(p[at+2*across]), int32(p[at+3*across])
		switch {
		case 4*magnitude(p0-q0)+magnitude(p1-q1) > 2*limit+1 ||
			max(magnitude(p3-p2), magnitude(p2-p1), magnitude(p1-p0), magnitude(q3-q2), magnitude(q2-q1), magnitude(q1-q0)) > s.interior:
		case max(magnitude(p1-p0), magnitude(q1-q0)) > s.variance:
			p[at-across], p[at] = common(p1, p0, q0, q1)
		case inner:
			p[at-2*across], p[at-across], p[at], p[at+across] = four(p1, p0, q0, q1)
		default:
			a := signed(3*(q0-p0) + signed(p1-q1))
			a1, a2, a3 := (27*a+63)>>7, (18*a+63)>>7, (9*a+63)>>7
			p[at-3*across], p[at+2*across] = clip(p2+a3), clip(q2-a3)
			p[at-2*across], p[at+across] = clip(p1+a2), clip(q1-a2)
			p[at-across], p[at] = clip(p0+a1), clip(q0-a1)
		}
		at += along
	}
}

// common filters the two pixels at an edge.
func common(p1, p0, q0, q1 int32) (p, q byte) {
	a := 3*(q0-p0) + signed(p1-q1)
	return clip(p0 + fifth((a+3)>>3)), clip(q0 - fifth((a+4)>>3))
}

// four filters two pixels on each side of an edge.
func four(p1, p0, q0, q1 int32) (b1, b0, c0, c1 byte) {
	a := 3 * (q0 - p0)
	a1, a2 := fifth((a+4)>>3), fifth((a+3)>>3)
	a3 := (a1 + 1) >> 1
	return clip(p1 + a3), clip(p0 + a2), clip(q0 - a1), clip(q1 - a3)
}

func magnitude(v int32) int32 { return max(v, -v) }

// signed is v within a signed byte, fifth within five bits.
func signed(v int32) int32 { return max(-128, min(v, 127)) }
func fifth(v int32) int32  { return max(-16, min(v, 15)) }
