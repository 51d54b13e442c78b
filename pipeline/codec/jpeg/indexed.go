package jpeg

// indexed is the source for a scan that has an index. Of each row of MCUs it reads the data from the last mark before the region to the
// first one behind it.
type indexed struct {
	sequential
	index *index
	end   int // column behind the region
	row   int // that the coder is in, -1: none
}

// open readies the source for the scan that the coder is ready for.
func (s *indexed) open(c *coder, x *index, end int) {
	s.sequential.open(c)
	s.index, s.end, s.row = x, end, -1
}

func (s *indexed) read(x, y, n int) *run {
	if y != s.row {
		s.row = y
		s.seek(x, y)
	}
	return s.sequential.read(x, y, n)
}

// seek moves to the last mark at or before column x of row y.
func (s *indexed) seek(x, y int) {
	marks := s.index.marks[y*s.index.perRow:]
	k := x / s.index.interval
	behind := min(ceilDiv(s.end, s.index.interval), s.index.perRow) // behind the last one of a row is the first one of the next
	s.coder.jump(y*s.coder.row+k*s.index.interval, &marks[k], &marks[behind])
}
