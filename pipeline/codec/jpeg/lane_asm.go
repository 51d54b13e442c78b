//go:build amd64 && !purego

package jpeg

import (
	"unsafe"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

//go:generate go -C ../../internal/kernel/_gen run ./entropy -out ../../../codec/jpeg/lane_amd64.s -stubs ../../../codec/jpeg/lane_stubs_amd64.go -pkg jpeg

// The assembly reads no further than the Go code: where an MCU begins before the end of the data, the segment's padding holds all it can take;
// of a lane that begins behind the end it reads the bits that come next, which the padding has as well.
// What it writes to lies in the slices checked here: at a unit's place of MCUs below runLength, and in a block below 64.

func (l *lane) readVector(cells []kernel.Block, m, n int) int {
	_, _ = cells[l.cells-1], runs[m+n]
	read := readRun11
	if l.width == fewBits {
		read = readRun10
	}
	return read(l.start(), &l.bits.acc, l.segment.bits, l.order(), len(l.units), &cells[0][0], m, m+n) - m
}

// readBothVector is for tables of acBits.
func readBothVector(first, second *lane, cells, others []kernel.Block, n int) int {
	_, _, _ = cells[first.cells-1], others[first.cells-1], runs[n]
	return readTwoRuns(first.start(), &first.bits.acc, first.segment.bits, first.order(), &cells[0][0],
		second.start(), &second.bits.acc, second.segment.bits, second.order(), &others[0][0], len(first.units), 0, n)
}

func (l *lane) skipVector(n int) int {
	skip := skipRun11
	if l.width == fewBits {
		skip = skipRun10
	}
	return skip(l.start(), &l.bits.acc, l.segment.bits, l.order(), len(l.units), 0, n)
}

// readBandsVector reads bands as readBands does, and returns of how many blocks: all, or those before one that it leaves. It writes to as many blocks and
// masks as there are masks; where there are no blocks, to one that is aside.
func (c *coder) readBandsVector(out []kernel.Block, sent []uint64) int {
	var aside kernel.Block
	cells, step, left, band := &aside, 0, 0, &c.scan.band
	if len(out) > 0 {
		_, cells, step = out[len(sent)-1], &out[0], int(unsafe.Sizeof(aside))
	}
	if band.high == 0 {
		left, c.ended = readFirstBands(c.start(), &c.bits.acc, c.segment.bits, (*uint32)(&c.band.entries[0]), &zigzag[0],
			band.first, band.last, band.low, c.ended, &sent[0], len(sent), &cells[0], step)
	} else {
		left, c.ended = readRefiningBands(c.start(), &c.bits.acc, c.segment.bits, (*uint32)(&c.band.entries[0]), &zigzag[0],
			band.first, band.last, band.low, c.ended, &sent[0], len(sent), &cells[0], step, &bytePlaces[0][0])
	}
	return len(sent) - left
}

func (t *acTable) setVector() {
	entries, pairs := (*uint32)(&t.entries[0]), &t.pairs[0].first
	if t.width == fewBits {
		setPairs10(entries, pairs)
	} else {
		setPairs11(entries, pairs)
	}
}

func (t *acTable) setTriplesVector() {
	entries, triples := (*uint32)(&t.entries[0]), (*uint32)(&t.triples[0])
	if t.width == fewBits {
		setTriples10(entries, triples)
	} else {
		setTriples11(entries, triples)
	}
}

var runs [runLength + 1]struct{} // indexed by a number of MCUs that fits into a run

// start is the first byte of the lane's data, behind whose end lies its padding.
func (l *lane) start() *byte { return &l.segment.data[:l.segment.bits/8+segmentPad][0] }

func (l *lane) order() *byte { return (*byte)(unsafe.Pointer(&l.units[0])) }
