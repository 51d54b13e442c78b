package jpeg

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// indexed is the source for a scan that has an index. Of each row of MCUs it reads the data from the last mark before the region to the
// first one behind it, and it reads two rows at once.
type indexed struct {
	sequential
	index *index
	mcus  image.Rectangle // of the region
	upper int             // row that the coder is in, -1: none
	lower int             // row that below is in, -1: none
	below lane
	kept  []kernel.Block // blocks of the lower row, run by run
	again run            // one of those
}

// open readies the source for the scan that the coder is ready for.
func (s *indexed) open(c *coder, f *frame, x *index, mcus image.Rectangle) {
	s.sequential.open(c)
	s.index, s.mcus, s.upper, s.lower = x, mcus, -1, -1
	s.below.vector, s.below.width, s.below.segment.unstuff = c.vector, c.width, c.segment.unstuff
	s.below.preds = c.preds
	s.below.listUnits(f, c.scan)
	if n := ceilDiv(mcus.Dx(), runLength) * c.cells; cap(s.kept) < n {
		s.kept = make([]kernel.Block, n)
	}
}

func (s *indexed) read(x, y, n int) *run {
	c := s.coder
	kept := s.kept[(x-s.mcus.Min.X)/runLength*c.cells:][:c.cells]
	if y == s.lower {
		s.below.lay(&s.again, kept)
		return &s.again
	}
	if y != s.upper {
		s.seek(x, y)
	}
	clear(s.cells[:c.cells])
	if s.lower < 0 {
		c.read(s.cells[:], 0, n)
	} else {
		clear(kept)
		readBoth(&c.lane, &s.below, s.cells[:], kept, n)
	}
	return &s.run
}

// seek moves to column x of row y, and to the same of the row below if the region has it.
func (s *indexed) seek(x, y int) {
	s.upper, s.lower = y, -1
	lead := s.jump(&s.coder.lane, x, y)
	if y+1 < s.mcus.Max.Y {
		s.lower = y + 1
		s.jump(&s.below, x, s.lower)
	}
	for ; lead > 0; lead -= runLength { // so few take less time than to skip in one lane and the other, and the tables for that
		n := min(lead, runLength)
		if s.lower < 0 {
			s.coder.read(s.kept, 0, n)
		} else {
			readBoth(&s.coder.lane, &s.below, s.cells[:], s.kept, n)
		}
	}
}

// jump moves a lane to the last mark at or before column x of row y, and returns how many MCUs lie between.
func (s *indexed) jump(l *lane, x, y int) int {
	marks := s.index.marks[y*s.index.perRow:]
	k := x / s.index.interval
	behind := min(ceilDiv(s.mcus.Max.X, s.index.interval), s.index.perRow) // behind the last one of a row is the first one of the next
	l.jump(s.coder.cursor.src[s.coder.scan.data:], &marks[k], &marks[behind])
	return x - k*s.index.interval
}
