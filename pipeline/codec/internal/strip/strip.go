// Package strip is what decoders share: the check of the region they are asked for, and the way of the rows they make one by one to a pixel.Sink, a
// few at a time. It starts no goroutine.
package strip

import "github.com/feedwater-io/feedwater/pipeline/pixel"

// rowsPerCall is how many rows the sink gets at most: few enough for the first-level cache.
const rowsPerCall = 8

// Writer gathers rows for a sink. It reuses its memory and is not for concurrent use.
type Writer struct {
	sink          pixel.Sink
	rows          []byte
	bytes, stride int // of a row, and from one to the next
	n             int // rows that wait
}

// Begin starts a picture whose rows have width pixels.
func (w *Writer) Begin(width int, sink pixel.Sink) {
	w.sink, w.n = sink, 0
	w.bytes = 3 * width
	w.stride = (w.bytes+pixel.Pad-1)&^(pixel.Pad-1) + pixel.Pad
	if n := rowsPerCall*w.stride + pixel.Pad; cap(w.rows) < n {
		w.rows = make([]byte, n)
	}
}

// Row returns the next row, top to bottom, for the caller to fill before the next call. What it holds is undefined.
func (w *Writer) Row() []byte {
	if w.n == rowsPerCall {
		w.Flush()
	}
	w.n++
	return w.rows[(w.n-1)*w.stride:][:w.bytes:w.bytes]
}

// Flush hands over the rows that wait. It must follow the last row.
func (w *Writer) Flush() {
	if w.n > 0 {
		w.sink.Rows(w.rows[:(w.n-1)*w.stride+w.bytes+pixel.Pad], w.stride, w.n)
		w.n = 0
	}
}

// keep is the most memory, in bytes, that a decoder holds on to between pictures in any one buffer.
const keep = 32 << 20

// Keep returns b, or nil if that is too much to hold on to.
func Keep(b []byte) []byte {
	if cap(b) > keep {
		return nil
	}
	return b
}
