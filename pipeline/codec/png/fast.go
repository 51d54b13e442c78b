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
}

// windowTail is what of the window decompression is never asked to fill: what it writes too much, twice, and what is read behind a row.
const windowTail = 2*windowSlack + filterPad

// windowSize is how long the window is for rows of so many bytes: with history before a row, and room for what is decompressed ahead.
func windowSize(stride int) int { return 2*history + 2*windowAhead + stride + windowTail }

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
	right := out.file.rowBytes(out.region.Max.X)
	cur, prev := out.lines[0], out.lines[1]
	clear(prev)
	for y := 0; y < last; {
		if !f.fill((last - y) * stride) {
			return false
		}
		for ; y < last && f.begin+stride <= f.end; y++ {
			filter := f.window[f.begin]
			if filter > lastFilter {
				return false
			}
			if y < out.region.Max.Y {
				unfilterInto(filter, cur, f.window[f.begin+1:][:right], prev, out.file.pixelBytes(), f.vector)
				out.give(whole, y, cur[:right])
				cur, prev = prev, cur
			}
			f.begin += stride
		}
	}
	return true
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
