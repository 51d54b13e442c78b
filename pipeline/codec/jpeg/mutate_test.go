package jpeg

import (
	"bytes"
	"math/rand/v2"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/codec/internal/pillowtest"
)

// mutate gives a copy of b with some things wrong: bits, bytes, runs, markers, lengths, segments out of place, parts of another file.
func mutate(r *rand.Rand, b, other []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + r.IntN(1+r.IntN(5)) {
		if len(b) < 8 {
			break
		}
		b = mutations[r.IntN(len(mutations))](r, b, other)
	}
	return b
}

// mutations each do one thing to b, which they may change.
var mutations = []func(r *rand.Rand, b, other []byte) []byte{
	flipBit, flipBit, writeByte, writeByte, writeRun, dropRun, repeatRun, insertRun, cutEnd, changeMarker, insertMarker, insertSegment, changeLength,
	moveSegment, splice, graft,
}

func somewhere(r *rand.Rand, b []byte) int { return pillowtest.Place(r, b, headBytes) }

func stretch(r *rand.Rand, b []byte) (from, to int) { return pillowtest.Stretch(r, b, headBytes) }

// headBytes is in how many bytes the headers of most files are.
const headBytes = 700

func flipBit(r *rand.Rand, b, _ []byte) []byte {
	b[somewhere(r, b)] ^= 1 << r.IntN(8)
	return b
}

func writeByte(r *rand.Rand, b, _ []byte) []byte {
	b[somewhere(r, b)] = oddByte(r)
	return b
}

// oddByte is a byte that often is at an end of something.
func oddByte(r *rand.Rand) byte {
	if edges := []byte{0, 1, 2, 3, 4, 0x0f, 0x10, 0x11, 0x3f, 0x40, 0x7f, 0x80, 0xfe, 0xff}; r.IntN(2) == 0 {
		return edges[r.IntN(len(edges))]
	}
	return byte(r.Uint32())
}

func writeRun(r *rand.Rand, b, _ []byte) []byte {
	from, to := stretch(r, b)
	same, v := r.IntN(2) == 0, oddByte(r)
	for i := from; i < to; i++ {
		if b[i] = v; !same {
			b[i] = byte(r.Uint32())
		}
	}
	return b
}

func dropRun(r *rand.Rand, b, _ []byte) []byte {
	from, to := stretch(r, b)
	return slices.Delete(b, from, to)
}

func repeatRun(r *rand.Rand, b, _ []byte) []byte {
	from, to := stretch(r, b)
	return insert(b, to, b[from:to])
}

func insertRun(r *rand.Rand, b, _ []byte) []byte {
	x := make([]byte, 1+r.IntN(1<<r.IntN(8)))
	return writeRun(r, insert(b, somewhere(r, b), x), nil)
}

func cutEnd(r *rand.Rand, b, _ []byte) []byte {
	b = b[:len(b)-r.IntN(1+r.IntN(len(b)))]
	switch r.IntN(4) {
	case 0:
		return append(b, 0xff, byte(r.Uint32()))
	case 1, 2:
		return append(b, eoi...)
	}
	return b
}

// markers are the places of what looks like markers.
func markers(b []byte) (at []int) {
	for i := 0; i+1 < len(b); i++ {
		if b[i] == 0xff && b[i+1] != 0 && b[i+1] != 0xff {
			at = append(at, i)
		}
	}
	return append(at, len(b))
}

// segmentOf is a segment of b, or something like it: from one marker to the next, or to the one behind.
func segmentOf(r *rand.Rand, b []byte) (from, to int) {
	at := markers(b)
	i := r.IntN(len(at))
	return at[i], at[min(len(at)-1, i+1+r.IntN(2))]
}

// code is the second byte of a marker, of those that mean something as a rule.
func code(r *rand.Rand) byte {
	if r.IntN(4) == 0 {
		return byte(r.Uint32())
	}
	return byte(mSOF0 + r.IntN(0x40))
}

func changeMarker(r *rand.Rand, b, _ []byte) []byte {
	if from, to := segmentOf(r, b); from+1 < to {
		b[from+1] = code(r)
	}
	return b
}

func insertMarker(r *rand.Rand, b, _ []byte) []byte {
	return insert(b, somewhere(r, b), []byte{0xff, code(r)})
}

func insertSegment(r *rand.Rand, b, _ []byte) []byte {
	at, _ := segmentOf(r, b)
	x := make([]byte, 4+r.IntN(1<<r.IntN(6)))
	for i := range x {
		x[i] = oddByte(r)
	}
	x[0], x[1], x[2], x[3] = 0xff, code(r), 0, byte(len(x)-2)
	return insert(b, at, x)
}

func changeLength(r *rand.Rand, b, _ []byte) []byte {
	if from, to := segmentOf(r, b); from+3 < to {
		b[from+2+r.IntN(2)] += byte(r.IntN(9) - 4)
	}
	return b
}

// moveSegment takes a segment to another place, or leaves it where it was too, or drops it.
func moveSegment(r *rand.Rand, b, _ []byte) []byte {
	from, to := segmentOf(r, b)
	x := bytes.Clone(b[from:to])
	if r.IntN(3) > 0 {
		b = slices.Delete(b, from, to)
	}
	if r.IntN(3) == 0 || len(b) == 0 {
		return b
	}
	at, _ := segmentOf(r, b)
	return insert(b, at, x)
}

// splice ends b like another file.
func splice(r *rand.Rand, b, other []byte) []byte {
	if r.IntN(2) == 0 {
		return append(b[:somewhere(r, b)], other[somewhere(r, other):]...)
	}
	from, _ := segmentOf(r, b)
	tail, _ := segmentOf(r, other)
	return append(b[:from], other[tail:]...)
}

// graft gives b a segment of another file, in place of one of its own or beside it.
func graft(r *rand.Rand, b, other []byte) []byte {
	from, to := segmentOf(r, b)
	if r.IntN(2) == 0 {
		to = from
	}
	first, last := segmentOf(r, other)
	return slices.Concat(b[:from], other[first:last], b[to:])
}
