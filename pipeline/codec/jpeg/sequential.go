package jpeg

import "github.com/feedwater-io/feedwater/pipeline/internal/kernel"

// sequential is the source for a scan of all components. It decodes a run when it is asked for one.
type sequential struct {
	coder *coder
	slots []slot
	run   run
	cells [maxBlocks * runLength]kernel.Block
	used  int // cells
}

// slot is where the blocks of a unit go.
type slot struct {
	pred *predictor
	cell int // of the first MCU of a run
	step int // from one MCU to the next
}

// open readies the source for the scan that the coder is at.
func (s *sequential) open(c *coder) {
	s.coder, s.slots, s.used = c, s.slots[:0], 0
	start := 0
	for _, u := range c.units {
		stride := runLength * u.w
		if u.x == 0 && u.y == 0 { // the first of its component
			start = s.used
			s.run[u.comp] = blocks{b: s.cells[start:], stride: stride}
			s.used += stride * u.h
		}
		s.slots = append(s.slots, slot{pred: u.pred, cell: start + u.y*stride + u.x, step: u.w})
	}
}

func (s *sequential) read(x, y, n int) *run {
	c := s.coder
	c.skip(y*c.row + x - c.next)
	clear(s.cells[:s.used])
	for m := range n {
		if !c.mcu() {
			continue
		}
		b, data := c.bits, c.segment.data
		for i := range s.slots {
			t := &s.slots[i]
			b = t.pred.block(data, b, &s.cells[t.cell+m*t.step])
		}
		c.bits = b
	}
	return &s.run
}
