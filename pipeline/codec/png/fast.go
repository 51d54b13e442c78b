package png

import "encoding/binary"

// fastPath decodes files whose rows come in order, and whose data is in order beyond doubt: all rows are there, each with a filter that
// exists, the last block ends right behind the last row, in a chunk that is whole, and the checksum behind it is that of the rows. Pillow
// takes all of these, whichever pieces it reads them in.
type fastPath struct {
	vector   bool
	known    bool // the file was verified before: nothing behind the region is looked at
	verified bool // the file was verified now

	inflate    decompressor
	window     []byte
	begin, end int // of what is decompressed in window, and no row yet
	sum        adler
	lines      lines
}

const (
	// windowAhead is how much is decompressed at once.
	windowAhead = 64 << 10
	// fastRow is the longest row, in bytes, that the fast path takes.
	fastRow = 1 << 20
)

// release lets go of the file, and of the memory of long rows.
func (f *fastPath) release() {
	f.known, f.verified, f.inflate.src = false, false, nil
	if len(f.window) > windowSize(4*windowAhead) {
		f.window = nil
	}
	if len(f.lines.memory) > 4*windowAhead {
		f.lines.memory = nil
	}
}

// windowTail is what of the window decompression is never asked to fill: what it writes too much, twice, and what is read behind a row.
const windowTail = 2*windowSlack + filterPad

// windowSize is how long the window is for rows of so many bytes: with history before the rows that are made at once, and room for what is decompressed
// ahead.
func windowSize(stride int) int { return 2*history + 3*windowAhead + stride + windowTail }

// run gives the rows of the region to out. It returns where the chunks go on behind the data if that is beyond doubt; else the rows that
// out has are right all the same.
func (f *fastPath) run(data *inflater, out *output) (after int, ok bool) {
	stride := 1 + out.file.rowBytes(out.file.w)
	if !out.file.inOrder() || stride > fastRow || len(data.all) < zlibHeader || !isZlib([zlibHeader]byte(data.all)) || data.tooFew() {
		return 0, false
	}
	if n := windowSize(stride); len(f.window) < n {
		f.window = make([]byte, n)
	}
	f.begin, f.end, f.sum = 0, 0, newAdler()
	f.inflate.open(data.all[zlibHeader:])
	if !f.rows(out, stride) {
		return 0, false
	}
	if f.known {
		out.rows.Flush()
		return 0, true
	}
	if after, ok = f.finish(data); ok {
		out.rows.Flush()
	}
	return after, ok
}

// rows makes the rows of the region, and looks at the filters of those below it.
func (f *fastPath) rows(out *output, stride int) bool {
	last := out.file.h
	if f.known {
		last = out.region.Max.Y
	}
	atOnce := 1
	if f.vector {
		atOnce = max(1, min(rowsAtOnce, windowAhead/stride))
	}
	f.lines.begin(out.file.rowBytes(out.region.Max.X), atOnce)
	for y := 0; y < last; {
		if !f.fill((last - y) * stride) {
			return false
		}
		for y < last && f.begin+min(atOnce, last-y)*stride <= f.end {
			n := f.next(out, y, stride)
			if n == 0 {
				return false
			}
			y += n
			f.begin += n * stride
		}
	}
	return true
}

// next makes the next rows of the region, or looks at the filter of one below it. It returns how many; 0 where there is no such filter.
func (f *fastPath) next(out *output, y, stride int) int {
	left := out.region.Max.Y - y
	if left <= 0 {
		if f.window[f.begin] > lastFilter {
			return 0
		}
		return 1
	}
	right := out.file.rowBytes(out.region.Max.X)
	line, n := f.lines.undo(filtered{f.window[f.begin:], stride, right, out.file.pixelBytes()}, left, f.vector)
	for i := range n {
		out.give(whole, y+i, f.lines.line(line + i)[:right])
	}
	return n
}

// fill decompresses further data, as many as left bytes, and reports whether there are any.
func (f *fastPath) fill(left int) bool {
	most := len(f.window) - windowTail
	if f.end > most-windowAhead {
		keep := min(f.begin, f.end-history)
		copy(f.window, f.window[keep:f.end])
		f.begin -= keep
		f.end -= keep
	}
	limit := min(f.end+windowAhead, f.begin+left, most)
	end, _, err := f.inflate.decompress(f.window, f.end, limit)
	if err != nil || end < limit {
		return false
	}
	if !f.known {
		f.sum.add(f.window[f.end:end], f.vector)
	}
	f.end = end
	return true
}

// finish reports whether the data ends right behind the last row, and where the chunks go on.
func (f *fastPath) finish(data *inflater) (after int, ok bool) {
	if f.begin != f.end {
		return 0, false
	}
	end, ended, err := f.inflate.decompress(f.window, f.end, f.end+1)
	if err != nil || !ended || end != f.end {
		return 0, false
	}
	at := zlibHeader + f.inflate.position()
	if at+4 > len(data.all) || binary.BigEndian.Uint32(data.all[at:]) != f.sum.value() {
		return 0, false
	}
	_, p := data.piece(at - 1)
	return p.file, p.whole
}
