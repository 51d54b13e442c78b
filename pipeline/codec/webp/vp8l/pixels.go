package vp8l

// picture is a picture while its pixels are read.
type picture struct {
	w, h        int
	cacheBits   int // 0: no cache
	groups      []group
	groupOf     []uint32 // the group of each part; nil: there is one group
	groupBits   int
	groupStride int
	joins       bool // its pixels are read with joints, in assembly
}

// groupAt returns the codes of the part that a pixel is in.
func (p *picture) groupAt(x, y int) *group {
	if p.groupOf == nil {
		return &p.groups[0]
	}
	return &p.groups[p.groupOf[y>>p.groupBits*p.groupStride+x>>p.groupBits]]
}

// cache is the colors that came last, by a hash.
type cache struct {
	colors []uint32 // two that nobody looks at where the picture has no cache
	shift  int
	done   int // pixels that are in it
}

func (c *cache) insertUpTo(pix []uint32, n int) {
	for _, v := range pix[c.done:n] {
		c.colors[0x1e35a7bd*v>>c.shift] = v
	}
	c.done = n
}

// readPixels reads pixels up to place end, or a few more, and reports whether they are there.
func (s *stream) readPixels(p *picture, pix []uint32, end int) bool {
	bits := max(p.cacheBits, 1)
	colors := cache{colors: s.decoder.colors[:1<<bits], shift: 32 - bits}
	clear(colors.colors)
	p.joins = s.decoder.kernels.vector && !s.forgiving && len(pix) >= leastForJoint*len(p.groups)
	if p.joins {
		s.join()
	}
	for i, x, y := 0, 0, 0; i < end; {
		n, ok := s.readSome(p, &colors, pix, i, x, y)
		if !ok {
			return false
		}
		i += n
		if x += n; x >= p.w {
			if i < end && s.bits.over() {
				return false
			}
			y += x / p.w
			x %= p.w
		}
	}
	return s.forgiving || !s.bits.over()
}

// readSome reads the next pixels, which begin at place i, in column x of row y. It returns how many, and whether others may follow.
func (s *stream) readSome(p *picture, colors *cache, pix []uint32, i, x, y int) (n int, ok bool) {
	if s.forgiving {
		n = s.readForgiving(p, colors, pix, i, x, y)
		return n, n > 0
	}
	if p.joins {
		if n = s.readRow(p, colors, pix, i, x, y); x+n == p.w {
			return n, true
		}
	}
	i, x = i+n, x+n
	g, end := p.groupAt(x, y), p.w
	if p.groupOf != nil {
		end = min(end, (x>>p.groupBits+1)<<p.groupBits)
	}
	m := s.bits.literals(g, pix[i:i+end-x])
	if m == 0 {
		m = s.readSymbol(p, pix, i, g, colors)
	}
	return n + m, m > 0
}

// readForgiving reads pixels by the next symbol, of transparency that may end within its last one, and returns how many; 0 where they are none.
func (s *stream) readForgiving(p *picture, colors *cache, pix []uint32, i, x, y int) int {
	g := p.groupAt(x, y)
	switch {
	case s.bits.over():
		return 0
	case s.bits.isTail():
		return s.readLast(p, pix, i, g)
	}
	return s.readSymbol(p, pix, i, g, colors)
}

// readSymbol reads pixels by a symbol, and returns how many; 0 where they are none.
func (s *stream) readSymbol(p *picture, pix []uint32, i int, g *group, colors *cache) int {
	b := &s.bits
	b.refill()
	symbol := b.symbol(g.tables[green])
	switch {
	case symbol < literals: // transparency's
		pix[i] = g.rest | uint32(symbol)<<8
	case symbol < literals+lengthCodes:
		return s.copyPixels(pix, i, symbol-literals, g, p.w)
	default:
		colors.insertUpTo(pix, i)
		pix[i] = colors.colors[symbol-literals-lengthCodes]
	}
	return 1
}

// copyPixels copies pixels from before place i, and returns how many; 0 where there are none.
func (s *stream) copyPixels(pix []uint32, i, symbol int, g *group, w int) int {
	b := &s.bits
	n := 1 + b.readFar(symbol)
	b.refill()
	return copyWithin(pix, i, n, 1+b.readFar(b.symbol(g.tables[distance])), w)
}

// copyWithin copies n pixels to place i that a distance says, and returns n; 0 where they are not all within pix.
func copyWithin(pix []uint32, i, n, far, w int) int {
	from := i - placeOf(far, w)
	if from < 0 || n > len(pix)-i {
		return 0
	}
	if from+n <= i {
		copy(pix[i:i+n], pix[from:])
		return n
	}
	for k := range n {
		pix[i+k] = pix[from+k]
	}
	return n
}

// readFar reads the bits that a symbol of lengths or distances is followed by, and returns the number less one.
func (r *bitReader) readFar(symbol int) int {
	if symbol < 4 {
		return symbol
	}
	n := (symbol - 2) >> 1
	return (2+symbol&1)<<n + r.read(n)
}

// placeOf is how far back a distance is, of which the first ones are of places nearby.
func placeOf(far, w int) int {
	if far > len(nearPlaces) {
		return far - len(nearPlaces)
	}
	place := int(nearPlaces[far-1])
	return max(1, place>>4*w+8-place&15)
}
