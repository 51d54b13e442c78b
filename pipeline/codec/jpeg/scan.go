package jpeg

// scan is a scan header, the tables that are defined when the scan starts, and where its data is.
type scan struct {
	n       int // components
	comps   [maxComponents]scanComponent
	band    band
	restart int // MCUs between restart markers, 0: none
	data    int // first byte of entropy-coded data
}

type scanComponent struct {
	index        int // in the frame
	dc, ac       int // numbers of the Huffman tables
	dcDef, acDef definition
}

const maxBlocks = 10 // in an MCU, of libjpeg and the standard

// scanHeader reads an SOS segment.
func (p *parser) scanHeader() (s scan, err error) {
	if p.frame.n == 0 {
		return s, p.broken("a scan before the frame header")
	}
	size, n := p.u16(), p.u8()
	switch {
	case p.cut:
		return s, p.truncated()
	case n < 1 || n > 4 || size != 6+2*n:
		return s, p.broken("scan header of %d bytes for %d components", size, n)
	}
	for i := range n {
		id, tables := p.u8(), p.u8()
		if p.cut {
			return s, p.truncated()
		}
		c := p.frame.find(byte(id), i, &s)
		if c < 0 {
			return s, p.broken("scan of component %d, unknown or out of order", id)
		}
		s.comps[i] = scanComponent{index: c, dc: tables >> 4, ac: tables & 15}
		s.n++
	}
	s.band.first, s.band.last = p.u8(), p.u8()
	bits := p.u8()
	s.band.high, s.band.low = bits>>4, bits&15
	if p.cut {
		return s, p.truncated()
	}
	s.restart, s.data = p.restart, p.at
	return s, nil
}

// find gives the component of the i-th entry of a scan header, or -1. It repeats a quirk of libjpeg-turbo: entry i finds
// components from i on only, so that a scan has to list them in the frame's order.
func (f *frame) find(id byte, i int, s *scan) int {
	for c := i; c < f.n; c++ {
		if f.comps[c].id != id {
			continue
		}
		for _, other := range s.comps[:s.n] {
			if other.index == c {
				return -1
			}
		}
		return c
	}
	return -1
}

// useTables checks the tables that the scan needs and keeps those of this moment.
func (p *parser) useTables(s *scan) error {
	needDC, needAC := true, true
	if p.frame.progressive {
		needDC, needAC = s.band.first == 0 && s.band.high == 0, s.band.first > 0
	} else if len(p.scans) == 0 {
		p.standardTables()
	}
	blocks := 0
	for i := range s.n {
		sc := &s.comps[i]
		c := &p.frame.comps[sc.index]
		blocks += c.h * c.v
		if !c.latched {
			if c.quant > 3 || !p.quant[c.quant].set {
				return p.broken("quantisation table %d is not defined", c.quant)
			}
			c.latched, c.q = true, p.quant[c.quant].q
		}
		var err error
		if needDC {
			sc.dcDef, err = p.table(&p.dc, sc.dc, 15)
		}
		if needAC && err == nil {
			sc.acDef, err = p.table(&p.ac, sc.ac, 255)
		}
		if err != nil {
			return err
		}
	}
	if s.n > 1 && blocks > maxBlocks {
		return p.broken("%d blocks in an MCU", blocks)
	}
	if p.frame.progressive {
		return p.useBand(s)
	}
	return nil
}

// useBand checks the band of a scan and takes note of it.
func (p *parser) useBand(s *scan) error {
	if !s.band.valid(s.n) {
		return p.broken("coefficients %d to %d with %d to %d bits missing of %d components", s.band.first, s.band.last, s.band.low, s.band.high, s.n)
	}
	for _, sc := range s.comps[:s.n] {
		p.frame.comps[sc.index].note(s.band, len(p.scans) == 0)
	}
	return nil
}

// table gives a Huffman table whose symbols are at most limit.
func (p *parser) table(tables *[4]definition, number int, limit byte) (definition, error) {
	switch {
	case number > 3 || tables[number] == nil:
		return nil, p.broken("Huffman table %d is not defined", number)
	case !tables[number].valid(limit):
		return nil, p.broken("Huffman table %d makes no sense", number)
	}
	return tables[number], nil
}

// mcus is how many MCUs a row of the scan has, and how many rows.
func (s *scan) mcus(f *frame) (x, y int) {
	if s.n == 1 {
		c := &f.comps[s.comps[0].index]
		return c.blocksX, c.blocksY
	}
	return f.mcusX, f.mcusY
}

// blocks is how many blocks the scan visits.
func (s *scan) blocks(f *frame) (n int64) {
	x, y := s.mcus(f)
	if s.n == 1 {
		return int64(x) * int64(y)
	}
	for _, sc := range s.comps[:s.n] {
		n += int64(f.comps[sc.index].h * f.comps[sc.index].v)
	}
	return n * int64(x) * int64(y)
}

// restarts is how many restart markers the scan has if none is missing.
func (s *scan) restarts(f *frame) int64 {
	if s.restart == 0 {
		return 0
	}
	x, y := s.mcus(f)
	return (int64(x)*int64(y) - 1) / int64(s.restart)
}

// walk passes over the data of a scan and returns the marker behind it, which is read. first takes the first interval if
// the scan is the first one.
func (p *parser) walk(s *scan, first *segment) (marker byte, err error) {
	c := cursor{src: p.src, at: p.at}
	if len(p.scans) == 1 {
		first.fill(p.src, p.at, segmentPad)
		c.at = first.end
	}
	for range s.restarts(&p.frame) {
		if c.resume() {
			continue
		}
		if c.marker < mRST0 || c.marker > mRST7 { // nothing moves from here on
			break
		}
	}
	found := c.marker != 0 || c.find()
	p.at = c.at
	if !found {
		return 0, p.truncated()
	}
	return c.marker, nil
}
