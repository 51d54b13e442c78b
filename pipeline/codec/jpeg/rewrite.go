package jpeg

import (
	"encoding/binary"
	mathbits "math/bits"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// rewriter writes the coefficients of a progressive file as a sequential file of one scan, which decodes to the same
// pixels. Its Huffman tables are made for it: one pair for the first component, one for all others.
type rewriter struct {
	frame  *frame
	source multiscan // all blocks
	counts [2][2]symbolCounts
	codes  [2][2]encoding // as counts: by pair, then DC and AC
	out    bitWriter
	failed bool // there are values that no sequential file has
}

// sizes of values that sequential files of 8 bits a sample have.
const (
	maxDCSize = 11
	maxACSize = 10
)

// canRewrite reports whether a file may have a sequential copy: a progressive one with data of all its components, none of whose blocks is
// smoothed, which one scan can hold, and whose coefficients take no more memory than is kept.
func (f *frame) canRewrite() bool {
	if !f.progressive || f.smoothed() {
		return false
	}
	blocks := 0
	for i := range f.n {
		c := &f.comps[i]
		if !c.latched || f.mcusX*c.h*f.mcusY*c.v > keptBlocks {
			return false
		}
		blocks += c.h * c.v
	}
	return f.n == 1 || blocks <= maxBlocks
}

// rewrite appends the sequential file to dst, or nothing where there is none.
func (w *rewriter) rewrite(dst []byte, p *parser, c *coder) []byte {
	f := &p.frame
	w.frame, w.failed, w.counts = f, false, [2][2]symbolCounts{}
	w.source.decode(p.src, f, p.scans, c, fullMCUs(f))
	w.walk(func(class, pair, symbol int, _ uint32, _ int) { w.counts[pair][class][symbol]++ })
	if w.failed {
		return dst
	}
	dst = appendHead(dst, p)
	for pair := range min(f.n, 2) {
		for class := range 2 {
			d := w.counts[pair][class].makeDefinition()
			w.codes[pair][class].set(d)
			dst = appendSegment(dst, mDHT, append([]byte{byte(class<<4 | pair)}, d...))
		}
	}
	scan := []byte{byte(f.n)}
	for i := range f.n {
		scan = append(scan, f.comps[i].id, byte(min(i, 1)*0x11))
	}
	dst = appendSegment(dst, mSOS, append(scan, 0, 63, 0))
	w.out = bitWriter{bytes: dst}
	w.walk(func(class, pair, symbol int, value uint32, size int) {
		e := &w.codes[pair][class]
		w.out.write(uint64(e.code[symbol])<<size|uint64(value), int(e.size[symbol])+size)
	})
	dst = append(w.out.finish(), 0xff, mEOI)
	w.out.bytes = nil
	return dst
}

// appendHead appends what comes before the tables of codes: what space asks for, quantisation and the frame.
func appendHead(dst []byte, p *parser) []byte {
	f := &p.frame
	dst = append(dst, 0xff, mSOI)
	if p.jfif {
		dst = appendSegment(dst, mAPP0, []byte("JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"))
	}
	if p.adobe >= 0 {
		dst = appendSegment(dst, mAPPE, append([]byte("Adobe\x00\x64\x00\x00\x00\x00"), byte(p.adobe)))
	}
	head := append(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16([]byte{8}, uint16(f.h)), uint16(f.w)), byte(f.n)) //nolint:gosec // at most maxSide
	for i := range f.n {
		c := &f.comps[i]
		table := []byte{0x10 | byte(i)}
		for _, at := range zigzag {
			table = binary.BigEndian.AppendUint16(table, c.q[at])
		}
		dst = appendSegment(dst, mDQT, table)
		head = append(head, c.id, byte(c.h<<4|c.v), byte(i))
	}
	return appendSegment(dst, mSOF1, head)
}

func appendSegment(dst []byte, marker byte, content []byte) []byte {
	return append(binary.BigEndian.AppendUint16(append(dst, 0xff, marker), uint16(len(content)+2)), content...) //nolint:gosec // a few hundred
}

// walk calls emit for each symbol of the scan, in order: its class, 0 for DC and 1 for AC, its pair of tables, and the value behind it, of size bits.
func (w *rewriter) walk(emit func(class, pair, symbol int, value uint32, size int)) {
	f := w.frame
	var last [maxComponents]int32
	block := func(i, x, y int) {
		b := w.source.grids[i].at(x, y)
		d := int32(b[0]) - last[i]
		last[i] = int32(b[0])
		w.walkBlock(b, d, min(i, 1), emit)
	}
	if f.n == 1 {
		c := &f.comps[0]
		for y := range c.blocksY {
			for x := range c.blocksX {
				block(0, x, y)
			}
		}
		return
	}
	for n := range f.mcusX * f.mcusY {
		for i := range f.n {
			c := &f.comps[i]
			for k := range c.h * c.v {
				block(i, n%f.mcusX*c.h+k%c.h, n/f.mcusX*c.v+k/c.h)
			}
		}
	}
}

// walkBlock is walk for one block, whose first coefficient differs by d from the last one of its component.
func (w *rewriter) walkBlock(b *kernel.Block, d int32, pair int, emit func(class, pair, symbol int, value uint32, size int)) {
	value, size := valueBits(d)
	if size > maxDCSize {
		w.failed = true
		return
	}
	emit(0, pair, size, value, size)
	run := 0
	for _, at := range zigzag[1:] {
		if b[at] == 0 {
			run++
			continue
		}
		for ; run > 15; run -= 16 {
			emit(1, pair, 0xf0, 0, 0)
		}
		value, size := valueBits(int32(b[at]))
		if size > maxACSize {
			w.failed = true
			return
		}
		emit(1, pair, run<<4|size, value, size)
		run = 0
	}
	if run > 0 {
		emit(1, pair, 0, 0, 0)
	}
}

// valueBits is a value as it follows its symbol, which says how many bits it has.
func valueBits(v int32) (value uint32, size int) {
	size = mathbits.Len32(uint32(max(v, -v))) //nolint:gosec // not negative
	if v < 0 {
		v--
	}
	return uint32(v) & (1<<size - 1), size //nolint:gosec // the low bits of it
}

// bitWriter writes entropy-coded data, zeros stuffed.
type bitWriter struct {
	bytes []byte
	acc   uint64 // its low n bits are to be written
	n     int
}

// write writes the low bits of v, at most 32.
func (w *bitWriter) write(v uint64, n int) {
	w.acc, w.n = w.acc<<n|v, w.n+n
	for ; w.n >= 8; w.n -= 8 {
		b := byte(w.acc >> (w.n - 8))
		w.bytes = append(w.bytes, b)
		if b == 0xff {
			w.bytes = append(w.bytes, 0)
		}
	}
}

// finish fills the last byte with ones.
func (w *bitWriter) finish() []byte {
	if w.n > 0 {
		w.write(1<<(8-w.n)-1, 8-w.n)
	}
	return w.bytes
}
