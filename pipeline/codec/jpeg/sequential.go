package jpeg

import "github.com/feedwater-io/feedwater/pipeline/internal/kernel"

// sequential is the source for a scan of all components. It decodes a run when it is asked for one.
type sequential struct {
	coder *coder
	run   run
	cells [maxBlocks * runLength]kernel.Block
}

// open readies the source for the scan that the coder is at.
func (s *sequential) open(c *coder) {
	s.coder = c
	c.lay(&s.run, s.cells[:])
}

func (s *sequential) read(x, y, n int) *run {
	c := s.coder
	c.skip(y*c.row + x - c.next)
	clear(s.cells[:c.cells])
	for m := 0; m < n; {
		k := c.take(n - m)
		c.read(s.cells[:], m, k)
		m += k
	}
	return &s.run
}
