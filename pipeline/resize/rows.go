package resize

import "github.com/feedwater-io/feedwater/pipeline/pixel"

// rowWindow is a window that slides down a picture: count rows of size bytes each, the first being row base of the
// picture. Rows enter at the bottom and leave at the top.
type rowWindow struct {
	pix         []byte
	size        int
	capacity    int // rows
	base, count int
}

// resetTo empties the window. Behind the last row there are pad bytes.
func (s *rowWindow) resetTo(size, capacity, pad int) {
	s.pix = pixel.Grow(s.pix, size*capacity+pad)
	s.size, s.capacity, s.base, s.count = size, capacity, 0, 0
}

// freeRows is for how many rows there is place at the bottom.
func (s *rowWindow) freeRows() int { return s.capacity - s.count }

// endRow is the row of the picture that enters next.
func (s *rowWindow) endRow() int { return s.base + s.count }

// rowsFrom returns the memory from row y of the picture on.
func (s *rowWindow) rowsFrom(y int) []byte { return s.pix[(y-s.base)*s.size:] }

// dropBefore forgets the rows before row y and moves the others up.
func (s *rowWindow) dropBefore(y int) {
	gone := min(y-s.base, s.count)
	copy(s.pix, s.pix[gone*s.size:s.count*s.size])
	s.base, s.count = s.base+gone, s.count-gone
}

// addRows copies n rows in.
func (s *rowWindow) addRows(pix []byte, stride, n int) {
	for i := range n {
		copy(s.pix[(s.count+i)*s.size:][:s.size], pix[i*stride:])
	}
	s.count += n
}
