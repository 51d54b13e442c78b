package jpeg

import "math"

// notes are the marks that a coder sets while it reads a scan from its start, for an index. Places are those in the segment, without
// stuffed zeros.
type notes struct {
	interval int
	due      int // MCU that is marked next, finished or unrecorded
	marks    []mark
}

const (
	unrecorded = -1          // no marks are set
	finished   = math.MaxInt // no more are set: the scan is at its end, or damaged
)

// record makes the coder, at the start of a scan, set a mark every so many MCUs; 0: none.
func (c *coder) record(interval int) {
	c.interval, c.marks = interval, c.marks[:0]
	if interval > 0 {
		c.due = 0
	}
}

// note marks the next MCU. Where the data has run out there is nothing to mark any more.
func (c *coder) note() {
	if c.empty || c.bits.consumed() > c.segment.bits {
		c.marks, c.due = c.marks[:0], finished
		return
	}
	c.mark()
	c.due += min(c.interval, c.row-c.due%c.row)
}

func (c *coder) mark() {
	m := mark{bit: c.bits.consumed()}
	for i := range c.scan.n {
		m.last[i] = c.preds[i].last
	}
	c.marks = append(c.marks, m)
}

// noteBefore marks the next MCU if it is due, and returns how many of n MCUs come before the next mark.
func (c *coder) noteBefore(n int) int {
	if c.next == c.due {
		c.note()
	}
	return min(n, c.due-c.next)
}

// complete marks the end of the data behind the last MCU, and reports whether the scan was whole: all its MCUs had data, all the data
// was theirs, but for the bits that fill the last byte, and the tables had all its codes.
func (c *coder) complete() bool {
	left := c.segment.bits - c.bits.consumed()
	if len(c.marks) == 0 || c.empty || left < 0 || left > 7 {
		return false
	}
	c.mark()
	for _, p := range c.preds[:c.scan.n] {
		if p.dc.long.missed || p.ac.long.missed {
			return false
		}
	}
	return true
}

// jump moves to the MCU that begins at mark from, and takes the data up to another mark. data is that of the scan, which has no restart markers.
func (l *lane) jump(data []byte, from, to *mark) {
	first, end := from.bit>>3, (to.bit+7)>>3
	l.segment.take(data[first:min(end+1, len(data))]) // one byte more: it may be the zero behind the last
	l.bits = bits{}.refill(l.segment.data).drop(uint32(from.bit & 7))
	l.empty = false
	for i := range l.preds {
		l.preds[i].last = from.last[i]
	}
}
