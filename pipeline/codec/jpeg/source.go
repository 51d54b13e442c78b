package jpeg

import "github.com/feedwater-io/feedwater/pipeline/internal/kernel"

// A source makes quantised coefficients. It is the seam between entropy decoding and everything behind it: the output
// stage does not know whether they come from one scan (sequential, or indexed, which enters it anywhere), from several (multiscan) or from elsewhere.
type source interface {
	// read gives the coefficients of the n MCUs from column x of MCU row y on; n is at most runLength. Calls go from left
	// to right and from top to bottom, columns by multiples of runLength; MCUs between two calls are not needed. The
	// blocks stay valid until the next call.
	read(x, y, n int) *run
}

// runLength is how many MCUs are read at once: few enough for the first-level cache, and even because blocks are
// transformed in pairs.
const runLength = 8

// run holds the blocks of neighbouring MCUs of one MCU row, by component.
type run [maxComponents]blocks

// blocks are those of one component: block (x, y) is b[y*stride+x]. Where a row of the run has an odd number of blocks, one
// more exists behind it, whatever it holds.
type blocks struct {
	b      []kernel.Block
	stride int
}

// even rounds up to an even number.
func even(n int) int { return (n + 1) &^ 1 }
