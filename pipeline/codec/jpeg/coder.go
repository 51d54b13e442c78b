package jpeg

import "math"

// coder reads the Huffman-coded data of a scan, MCU after MCU. Damage is treated as libjpeg treats it: the MCU in which the
// data of an interval runs out ends in zero bits, and the interval's MCUs behind it are empty.
type coder struct {
	lane
	scan   *scan
	cursor cursor
	left   int // MCUs before a restart marker is due
	next   int // number of the next MCU
	row    int // MCUs in a row
	dc     [4]dcTable
	ac     [4]acTable
	band   bandTable
	ended  int // blocks that end before their band begins, progressive files only
	notes
}

// open sets the coder to the start of a scan.
func (c *coder) open(src []byte, f *frame, s *scan) {
	c.ready(src, f, s, fewBits)
	c.enter(s.data)
}

// ready sets the coder to a scan, but to no place in it. Look-ups of AC codes take width bits.
func (c *coder) ready(src []byte, f *frame, s *scan, width int) {
	if c.scan != s || c.width != width {
		c.scan, c.width = s, width
		c.buildTables(f.progressive)
		c.listUnits(f, s)
	}
	c.row, _ = s.mcus(f)
	c.next = 0
	c.cursor = cursor{src: src}
	c.due = unrecorded
}

// buildTables makes the look-ups of the tables that the scan needs. A scan of a progressive file that has AC coefficients has one component.
func (c *coder) buildTables(progressive bool) {
	var dc, ac [4]bool
	for i, sc := range c.scan.comps[:c.scan.n] {
		if sc.dcDef != nil && !dc[sc.dc] {
			c.dc[sc.dc].build(sc.dcDef)
			dc[sc.dc] = true
		}
		switch {
		case sc.acDef == nil:
		case progressive:
			of := kindBand
			if c.scan.band.high > 0 {
				of = kindRefine
			}
			c.band.build(sc.acDef, of)
		case !ac[sc.ac]:
			c.ac[sc.ac].build(sc.acDef, c.width, c.vector)
			ac[sc.ac] = true
		}
		c.preds[i] = predictor{dc: &c.dc[sc.dc&3], ac: &c.ac[sc.ac&3]}
	}
}

// enter starts the interval whose data is at a place of the file.
func (c *coder) enter(at int) {
	c.segment.fill(c.cursor.src, at, padOf(len(c.units)))
	c.cursor.at = c.segment.end
	c.cursor.find()
	c.empty = false
	c.begin()
}

// begin sets the reader to the start of the segment.
func (c *coder) begin() {
	c.bits, c.ended = bits{}, 0
	for i := range c.preds {
		c.preds[i].last = 0
	}
	c.left = math.MaxInt
	if c.scan.restart > 0 {
		c.left = c.scan.restart
	}
}

// resume starts the next interval. An interval that was lost has no data; then libjpeg decodes one MCU from zero bits unless
// the interval before ran out of data.
func (c *coder) resume() {
	c.empty = c.exhausted()
	switch {
	case c.cursor.resume():
		c.enter(c.cursor.at)
	case c.empty:
		c.begin()
		if c.cursor.marker < mRST0 || c.cursor.marker > mRST7 { // nothing but the end of the scan comes any more
			c.left = math.MaxInt
		}
	default:
		c.segment.blank(padOf(len(c.units)))
		c.begin()
	}
}

// mcu moves to the next MCU and reports whether it has data: then its units must be read.
func (c *coder) mcu() bool {
	if c.left == 0 {
		c.resume()
	}
	if c.next == c.due {
		c.note()
	}
	c.left--
	c.next++
	if c.bits.consumed() > c.segment.bits {
		c.empty = true
	}
	return !c.empty
}

// take moves past up to n MCUs, at least one, that lie in one interval, and returns how many. If the interval has data they must be read;
// c.empty says that it has none.
func (c *coder) take(n int) int {
	if c.left == 0 {
		c.resume()
	}
	n = min(n, c.left)
	if c.due >= 0 {
		n = c.noteBefore(n)
	}
	c.left -= n
	c.next += n
	c.empty = c.exhausted()
	return n
}

// exhausted reports whether the interval has run out of data.
func (c *coder) exhausted() bool { return c.empty || c.bits.consumed() > c.segment.bits }

// skip passes over n MCUs. It does not read an interval that it skips to the end if the restart marker behind it is the due
// one: nothing in it matters then.
func (c *coder) skip(n int) {
	for n > 0 {
		if c.left == 0 {
			c.resume()
		}
		k := min(n, c.left)
		if c.due >= 0 {
			k = c.noteBefore(k)
		}
		n -= k
		whole := k == c.left && c.cursor.marker == mRST0+c.cursor.number
		c.left -= k
		c.next += k
		if !whole {
			c.lane.skip(k)
		}
	}
}
