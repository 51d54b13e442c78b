package png

import (
	"encoding/binary"
	"errors"
	"unsafe"
)

// errDeflate says that data is not beyond doubt. It is no verdict: package flate and Pillow's rules say what the data is.
var errDeflate = errors.New("doubtful data")

// decompressor decompresses deflated data into a window. It takes what zlib and package flate both take, and less: whatever is not
// beyond doubt is errDeflate. It reads and writes nothing outside of src and the window.
type decompressor struct {
	vector bool
	src    []byte
	at     int    // of src, what is not in acc
	acc    uint64 // the next bits, lowest first
	bits   uint   // how many of acc count; those above are of src[at]
	last   bool
	kind   blockKind
	stored int // bytes of a stored block that are left
	blocks int
	codes  codeTables
}

// blockKind is the block that decompression stands in.
type blockKind int

const (
	betweenBlocks blockKind = iota
	storedBlock
	huffmanBlock
)

const (
	// windowSlack is how much of a window behind limit decompress may write.
	windowSlack = 384
	// history is how far back data may copy from.
	history = 32 << 10
	// blockBytes and freeBlocks bound the work of tables: there must be as much data as blocks make likely.
	blockBytes, freeBlocks = 256, 64
)

// open begins with src, which follows zlib's header.
func (d *decompressor) open(src []byte) {
	d.src, d.at, d.acc, d.bits = src, 0, 0, 0
	d.last, d.kind, d.stored, d.blocks = false, betweenBlocks, 0, 0
}

// position is how many bytes of src the data takes up to here, a byte that is begun included.
func (d *decompressor) position() int { return d.at - int(d.bits>>3) }

// overrun reports whether bits behind the end of src were taken.
func (d *decompressor) overrun() bool { return d.position() > len(d.src) }

// refill makes at least 56 bits count. Behind the end of src they are 0.
func (d *decompressor) refill() {
	for d.bits < 56 {
		if d.at < len(d.src) {
			d.acc |= uint64(d.src[d.at]) << d.bits
		}
		d.at++
		d.bits += 8
	}
}

// take takes n bits, which must count.
func (d *decompressor) take(n uint) int {
	v := int(d.acc & (1<<n - 1))
	d.acc >>= n
	d.bits -= n
	return v
}

// decompress writes from window[w:] on until limit is reached, or the data ends, which it reports. It may go windowSlack beyond limit, for which there
// must be room. Of what was written before, history bytes must lie in front of w, or all.
func (d *decompressor) decompress(window []byte, w, limit int) (end int, ended bool, err error) {
	for w < limit {
		switch d.kind {
		case betweenBlocks:
			if d.last {
				return w, true, nil
			}
			err = d.beginBlock()
		case storedBlock:
			w, err = d.copyStored(window, w, limit)
		case huffmanBlock:
			w, err = d.decodeSymbols(window, w, limit)
		}
		if err != nil {
			return w, false, err
		}
	}
	return w, false, nil
}

// copyStored copies bytes of a stored block.
func (d *decompressor) copyStored(window []byte, w, limit int) (int, error) {
	n := min(d.stored, limit-w)
	if n > len(d.src)-d.at {
		return w, errDeflate
	}
	copy(window[w:w+n], d.src[d.at:])
	d.at += n
	if d.stored -= n; d.stored == 0 {
		d.kind = betweenBlocks
	}
	return w + n, nil
}

// beginBlock reads a block's header.
func (d *decompressor) beginBlock() error {
	if d.blocks++; d.blocks > freeBlocks+d.position()/blockBytes {
		return errDeflate
	}
	d.refill()
	d.last = d.take(1) == 1
	ok := false
	switch d.take(2) {
	case 0:
		ok = d.beginStored()
	case 1:
		d.kind, ok = huffmanBlock, true
		d.codes.setFixed()
	case 2:
		d.kind = huffmanBlock
		ok = d.readCodes()
	}
	if !ok || d.overrun() {
		return errDeflate
	}
	return nil
}

// beginStored reads the lengths of a stored block, and reports whether they agree.
func (d *decompressor) beginStored() bool {
	d.at -= int(d.bits >> 3)
	d.acc, d.bits = 0, 0
	if d.at+4 > len(d.src) {
		return false
	}
	n := binary.LittleEndian.Uint16(d.src[d.at:])
	inverse := binary.LittleEndian.Uint16(d.src[d.at+2:])
	d.at += 4
	d.stored, d.kind = int(n), storedBlock
	if n == 0 {
		d.kind = betweenBlocks
	}
	return n == ^inverse
}

// readCodes reads the codes of a block, and reports whether they are complete.
func (d *decompressor) readCodes() bool {
	literals, distances, n := 257+d.take(5), 1+d.take(5), 4+d.take(4)
	if literals > 286 || distances > 30 {
		return false
	}
	var lengths [19]byte
	for i := range n {
		if d.bits < 3 {
			d.refill()
		}
		lengths[order[i]] = byte(d.take(3))
	}
	c := &d.codes
	c.fixed = false
	if !buildTable(c.distances[:], lengthBits, lengths[:], lengthSymbols[:], false, nil) {
		return false
	}
	all := c.lengths[:literals+distances]
	for i := 0; i < len(all); {
		repeats, length := d.readLength(all[:i])
		if repeats == 0 || i+repeats > len(all) {
			return false
		}
		for range repeats {
			all[i] = length
			i++
		}
	}
	const end = 256
	return all[end] != 0 && c.set(all[:literals], all[literals:])
}

// readLength reads the next length of a code, and how often it comes; 0 where there is none.
func (d *decompressor) readLength(before []byte) (repeats int, length byte) {
	if d.bits < 14 {
		d.refill()
	}
	e := d.codes.distances[d.acc&(1<<lengthBits-1)]
	d.take(uint(e & entryBits))
	switch symbol := byte(e >> 8); {
	case symbol < 16:
		return 1, symbol
	case symbol == 16 && len(before) > 0:
		return 3 + d.take(2), before[len(before)-1]
	case symbol == 17:
		return 3 + d.take(3), 0
	case symbol == 18:
		return 11 + d.take(7), 0
	}
	return 0, 0
}

// loadWord loads 8 bytes at p[i:].
func loadWord(p unsafe.Pointer, i int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, i))[:])
}

// storeWord stores 8 bytes at p[i:].
func storeWord(p unsafe.Pointer, i int, v uint64) {
	binary.LittleEndian.PutUint64((*[8]byte)(unsafe.Add(p, i))[:], v)
}
