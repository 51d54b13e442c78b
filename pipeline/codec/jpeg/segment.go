package jpeg

// padOf is how many zero bytes follow the data of a segment, so that an MCU of so many blocks which starts inside the data can be decoded
// to its end whatever its bits are.
func padOf(blocks int) int { return blocks*blockBytes + 2*refillBytes }

// segmentPad is what the largest MCU needs. There is memory for it behind the data of every segment.
const segmentPad = maxBlocks*blockBytes + 2*refillBytes

// segment is the data of one restart interval without the stuffed zeros, followed by zeros.
type segment struct {
	unstuff func(dst, src []byte) (written, read int)
	start   int // place in the file, 0: nothing is here
	end     int // place in the file of the marker behind it
	data    []byte
	bits    int // in data, padding not counted
}

// forget makes the segment empty, and gives memory back that only a huge file needs.
func (s *segment) forget() {
	s.start = 0
	if len(s.data) > keptBytes {
		s.data = nil
	}
}

// fill takes the data at src[at:] up to the next marker, unless it is here already, and puts pad zeros behind it. An interval may be a single
// block, and a picture have millions of them: more zeros than its scan's MCUs need would take most of the time.
func (s *segment) fill(src []byte, at, pad int) {
	if s.start == at {
		return
	}
	rest := src[at:]
	s.data = room(s.data, len(rest)+segmentPad)
	n, read := s.unstuff(s.data, rest)
	clear(s.data[n : n+pad])
	s.start, s.end, s.bits = at, at+read, 8*n
}

// take takes a piece of data without markers.
func (s *segment) take(src []byte) {
	s.data = room(s.data, len(src)+segmentPad)
	n, _ := s.unstuff(s.data, src)
	clear(s.data[n : n+segmentPad])
	s.start, s.bits = 0, 8*n
}

// room returns memory of at least n bytes, b itself if it is large enough.
func room(b []byte, n int) []byte {
	if len(b) >= n {
		return b
	}
	return make([]byte, n+n/4)
}

// blank makes a segment without data, of pad zeros.
func (s *segment) blank(pad int) {
	clear(s.data[:pad])
	s.start, s.bits = 0, 0
}
