package jpeg

// frame is the picture's shape.
type frame struct {
	w, h         int
	progressive  bool
	n            int // components, 0 before the frame header
	comps        [maxComponents]component
	hMax, vMax   int // largest sampling factors
	mcusX, mcusY int // of a scan of all components
}

const maxComponents = 4

// component is one of the planes of the picture.
type component struct {
	id           byte
	quant        int // number of its quantisation table
	h, v         int // sampling factors: blocks in an MCU
	w, rows      int // size in samples
	blocksX      int // blocks that hold samples, which a scan of this component alone has
	blocksY      int
	latched      bool       // q is set: by the first scan that has this component
	q            [64]uint16 // row by row; all zero if no scan has the component
	known        accuracy   // of a progressive file, at its end
	before       accuracy   // the same before the last scan that has this component
	upX, upY     int        // factors to full size
	interpolated bool       // upsampled with neighbours, not by repetition
}

const maxSide = 65500 // of libjpeg

// frameKind is the name of a kind of frame that is not decoded here, by its marker, and whether m starts a frame at all.
func frameKind(m byte) (unsupported string, frame bool) {
	switch m {
	case mSOF0, mSOF1, mSOF2:
		return "", true
	case 0xc3:
		return "lossless", true
	case 0xc9:
		return "arithmetic coding", true
	case 0xca:
		return "progressive, arithmetic coding", true
	case 0xcb:
		return "lossless, arithmetic coding", true
	case 0xc5, 0xc6, 0xc7, 0xcd, 0xce, 0xcf:
		return "hierarchical", true
	}
	return "", false
}

// startFrame reads the frame header behind marker m. unsupported is the name of its kind if that is not decoded here.
func (p *parser) startFrame(m byte, unsupported string) error {
	f := &p.frame
	if f.n != 0 {
		return p.broken("a second frame header")
	}
	if unsupported != "" {
		return p.failure(ErrUnsupported, "%s", unsupported)
	}
	if len(p.icc) > 0 && len(p.icc) < 14 {
		return p.broken("ICC segment of %d bytes", len(p.icc))
	}
	size, precision := p.u16(), p.u8()
	f.h, f.w = p.u16(), p.u16()
	n := p.u8()
	switch {
	case p.cut || p.at+3*n > len(p.src):
		return p.truncated()
	case precision != 8:
		return p.failure(ErrUnsupported, "%d bits per sample", precision)
	case n != 1 && n != 3 && n != 4:
		return p.failure(ErrUnsupported, "%d components", n)
	case size != 8+3*n:
		return p.broken("frame header of %d bytes for %d components", size, n)
	case f.w == 0 || f.h == 0:
		return p.broken("size %dx%d", f.w, f.h)
	case f.w > maxSide || f.h > maxSide:
		return p.broken("size %dx%d, over %d", f.w, f.h, maxSide)
	}
	for i := range n {
		id, factors, quant := p.u8(), p.u8(), p.u8()
		c := component{id: byte(id), h: factors >> 4, v: factors & 15, quant: quant, known: unknown, before: unknown}
		if c.h < 1 || c.h > 4 || c.v < 1 || c.v > 4 {
			return p.broken("sampling factors %dx%d", c.h, c.v)
		}
		if n == 1 && m != mSOF2 { // a scan of one component has MCUs of one block; smoothing goes by the factors all the same
			c.h, c.v = 1, 1
		}
		f.comps[i] = c
	}
	f.n, f.progressive = n, m == mSOF2
	return p.layOut()
}

// layOut derives all sizes from the size of the picture and the sampling factors.
func (p *parser) layOut() error {
	f := &p.frame
	f.hMax, f.vMax = 1, 1
	for i := range f.n {
		f.hMax, f.vMax = max(f.hMax, f.comps[i].h), max(f.vMax, f.comps[i].v)
	}
	f.mcusX, f.mcusY = ceilDiv(f.w, 8*f.hMax), ceilDiv(f.h, 8*f.vMax)
	for i := range f.n {
		c := &f.comps[i]
		if f.hMax%c.h != 0 || f.vMax%c.v != 0 {
			return p.failure(ErrUnsupported, "fractional sampling, %dx%d of %dx%d", c.h, c.v, f.hMax, f.vMax)
		}
		c.upX, c.upY = f.hMax/c.h, f.vMax/c.v
		c.w, c.rows = ceilDiv(f.w*c.h, f.hMax), ceilDiv(f.h*c.v, f.vMax)
		c.blocksX, c.blocksY = ceilDiv(c.w, 8), ceilDiv(c.rows, 8)
		c.interpolated = c.upX == 1 && c.upY == 2 || c.upX == 2 && c.upY <= 2 && c.w > 2
	}
	return nil
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// single reports whether s, the first scan, is the only one: that of a sequential file with all components.
func (f *frame) single(s *scan) bool { return !f.progressive && s.n == f.n }
