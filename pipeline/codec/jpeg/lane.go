package jpeg

import "github.com/feedwater-io/feedwater/pipeline/internal/kernel"

// lane is a place in entropy-coded data, and all it takes to read on from there: the data, and the tables and last first coefficients of the
// blocks of an MCU. The MCU in which the data runs out ends in zero bits; behind it the lane is empty.
type lane struct {
	vector  bool // assembly reads
	width   int  // of the tables of AC codes
	bits    bits
	segment segment
	empty   bool // no more data
	units   []unit
	cells   int                      // blocks of a run
	preds   [maxComponents]predictor // by place in the scan
}

// unit is a block of an MCU. The assembly knows its first three fields and its size.
type unit struct {
	pred *predictor
	cell int // its place in a run of the first MCU
	step int // from there to that of the next
	comp int // in the frame
	x, y int // place among the blocks that the component has in an MCU
	w, h int // how many those are
}

// listUnits sets the units for a scan. The blocks of a run lie component by component, each as rows of blocks.
func (l *lane) listUnits(f *frame, s *scan) {
	l.units, l.cells = l.units[:0], 0
	for i, sc := range s.comps[:s.n] {
		w, h := f.comps[sc.index].h, f.comps[sc.index].v
		if s.n == 1 {
			w, h = 1, 1
		}
		for b := range w * h {
			x, y := b%w, b/w
			l.units = append(l.units, unit{
				pred: &l.preds[i], cell: l.cells + y*w*runLength + x, step: w,
				comp: sc.index, x: x, y: y, w: w, h: h,
			})
		}
		l.cells += w * h * runLength
	}
}

// lay sets r to the blocks of a run.
func (l *lane) lay(r *run, cells []kernel.Block) {
	for i := range l.units {
		if u := &l.units[i]; u.x == 0 && u.y == 0 { // the first of its component
			r[u.comp] = blocks{b: cells[u.cell:], stride: u.w * runLength}
		}
	}
}

// read decodes n MCUs to the places of a run from m on, which are zero.
func (l *lane) read(cells []kernel.Block, m, n int) {
	switch {
	case l.empty || n == 0:
	case l.vector:
		l.empty = l.readVector(cells[:l.cells], m, n) < n
	default:
		l.empty = l.readScalar(cells, m, n) < n
	}
}

// readScalar returns how many MCUs began where there still was data. It reads no others.
func (l *lane) readScalar(cells []kernel.Block, m, n int) int {
	b, data, end := l.bits, l.segment.data, l.segment.bits
	defer func() { l.bits = b }()
	for i := range n {
		if b.consumed() > end {
			return i
		}
		for k := range l.units {
			u := &l.units[k]
			b = u.pred.block(data, b, &cells[u.cell+(m+i)*u.step])
		}
	}
	return n
}

// readBoth is read for the first n places of two runs. Reading two lanes in turns takes less time than one after the other: a processor goes on with the
// one where it waits for the other.
func readBoth(first, second *lane, cells, others []kernel.Block, n int) {
	done := 0
	if first.vector && !first.empty && !second.empty {
		done = readBothVector(first, second, cells[:first.cells], others[:second.cells], n)
	}
	first.read(cells, done, n-done)
	second.read(others, done, n-done)
}

// skipLength is how many MCUs are skipped at a time, since assembly cannot be interrupted.
const skipLength = 1 << 10

// skip reads past n MCUs.
func (l *lane) skip(n int) {
	if n > 0 && !l.empty {
		l.ready()
	}
	for ; n > 0 && !l.empty; n -= skipLength {
		k := min(n, skipLength)
		if l.vector {
			l.empty = l.skipVector(k) < k
		} else {
			l.empty = l.skipScalar(k) < k
		}
	}
}

// ready readies the tables to skip.
func (l *lane) ready() {
	for i := range l.units {
		l.units[i].pred.ac.ready(l.vector)
	}
}

func (l *lane) skipScalar(n int) int {
	b, data, end := l.bits, l.segment.data, l.segment.bits
	defer func() { l.bits = b }()
	for i := range n {
		if b.consumed() > end {
			return i
		}
		for k := range l.units {
			b = l.units[k].pred.skip(data, b)
		}
	}
	return n
}
