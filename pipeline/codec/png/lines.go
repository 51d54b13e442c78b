package png

// lines are the last rows whose filters are undone, in one piece of memory. Behind each there are filterPad bytes.
type lines struct {
	memory []byte
	pitch  int
	n      int // how many lines there are, at least 2
	last   int // the line of the last row
}

// rowsAtOnce is how many rows are made at once at most.
const rowsAtOnce = 8

// begin makes room for rows of n bytes, of which as many as atOnce are made at once. The row above the first is zeros.
func (l *lines) begin(n, atOnce int) {
	l.pitch, l.n = n+filterPad, max(2, atOnce)
	l.last = l.n - 1
	l.memory = room(l.memory, l.n*l.pitch)
	clear(l.line(l.last))
}

// line is a line with its pad.
func (l *lines) line(i int) []byte { return l.memory[i*l.pitch:][:l.pitch] }

// other is one of the last two lines, and not that of the last row.
func (l *lines) other() int {
	if l.last == l.n-1 {
		return l.n - 2
	}
	return l.n - 1
}

// filtered is rows as data has them, stride bytes each: a filter, then pixels of bpp bytes, of which the first n bytes are wanted. Behind the last row
// there are filterPad bytes.
type filtered struct {
	data           []byte
	stride, n, bpp int
}

// undo undoes the filter of the first row, or those of several where it can and there are as many, and returns the lines that have them; none where there
// is no such filter.
func (l *lines) undo(f filtered, rows int, vector bool) (first, n int) {
	if vector {
		if n := f.wave(min(rows, l.n)); n > 0 {
			unfilterWave(l, f, n)
			l.last = n - 1
			return 0, n
		}
	}
	if f.data[0] > lastFilter {
		return 0, 0
	}
	above := l.line(l.last)
	l.last = l.other()
	unfilterInto(f.data[0], l.line(l.last), f.data[1:][:f.n], above, f.bpp, vector)
	return l.last, 1
}

// wave is how many of the first rows, of so many, unfilterWave makes at once: 8, 4 or none. Their pixels have 4 bytes at most, and what it reads
// in front of a row lies in the one above.
func (f filtered) wave(rows int) int {
	if f.bpp > 4 || f.n < filterPad {
		return 0
	}
	n := 0
	for n < min(rows, rowsAtOnce) && f.data[n*f.stride] == paethFilter {
		n++
	}
	return n / 4 * 4
}
