package png

import (
	"encoding/binary"
	"unsafe"
)

// What a symbol takes at most: bits of a literal's or a length's code, with what follows it, and of a distance's.
const (
	literalBits  = 15
	matchBits    = literalBits + 5
	distanceBits = 15 + 13
	// lookUps is how many entries of the first table a refill has bits for.
	lookUps = 56 / literalRoot
)

// decodeSymbols decodes symbols of a block with Huffman codes until limit is reached, or the block ends.
func (d *decompressor) decodeSymbols(window []byte, w, limit int) (int, error) {
	p := unsafe.Pointer(unsafe.SliceData(window[:limit+windowSlack]))
	if d.vector {
		w = d.decodeAhead(p, w, limit)
	}
	return d.decodeUntil(p, w, limit)
}

// decodeUntil is decodeSymbols with a pointer to the window. A round of its loop takes up to lookUps entries of literals, the last of which a match may
// stand for: 9 + 258 bytes, and 15 that a copy may write too many.
func (d *decompressor) decodeUntil(p unsafe.Pointer, w, limit int) (int, error) {
	s, safe, acc, bits, at := unsafe.Pointer(unsafe.SliceData(d.src)), len(d.src)-8, d.acc, d.bits, d.at
	literals, distances := &d.codes.literals, &d.codes.distances
	for w < limit {
		if at <= safe {
			acc, bits, at = appendWord(s, acc, bits, at)
		} else if acc, bits, at = d.refillFrom(acc, bits, at); d.overrun() {
			return w, errDeflate
		}
		e := literals[acc&(1<<literalRoot-1)]
		left := lookUps
		for ; left > 0 && e.isLiteral(); left-- {
			acc >>= e & entryBits
			bits -= uint(e & entryBits) // by drop it takes 3 % longer
			binary.LittleEndian.PutUint32((*[4]byte)(unsafe.Add(p, w))[:], uint32(e>>8))
			w += e.literals()
			e = literals[acc&(1<<literalRoot-1)]
		}
		if left == 0 {
			continue
		}
		if e&isOther != 0 {
			if e&isTable != 0 {
				acc, bits = acc>>literalRoot, bits-literalRoot
				e = literals[e.place()+uint32(acc)&e.mask()]
			}
			if e.isLiteral() {
				acc, bits = e.drop(acc, bits)
				*(*byte)(unsafe.Add(p, w)) = byte(e >> 8)
				w++
				continue
			}
			if e&isOther != 0 {
				return w, d.endSymbols(e, acc, bits, at)
			}
		}
		if bits < matchBits+distanceBits && at <= safe {
			acc, bits, at = appendWord(s, acc, bits, at)
		} else if bits < matchBits+distanceBits {
			acc, bits, at = d.refillFrom(acc, bits, at)
		}
		length := e.lengthBase() + e.added(acc)
		acc, bits = e.drop(acc, bits)
		if e = distances[acc&(1<<distanceRoot-1)]; e&isOther != 0 {
			acc, bits = acc>>distanceRoot, bits-distanceRoot
			if e = e.further(distances[:], acc); e&isOther != 0 {
				return w, errDeflate
			}
		}
		from := w - e.distanceBase() - e.added(acc)
		acc, bits = e.drop(acc, bits)
		if from < 0 {
			return w, errDeflate
		}
		copyMatch(p, w, from, length)
		w += length
	}
	return w, d.leaveLoop(acc, bits, at)
}

// appendWord adds the next bytes of s, of which 8 must be left, to the bits that count: at least 56 count then.
func appendWord(s unsafe.Pointer, acc uint64, bits uint, at int) (uint64, uint, int) {
	return acc | loadWord(s, at)<<(bits&63), bits | 56, at + int((63-bits)>>3)
}

// refillFrom is refill for a loop that has the decompressor's state in registers.
func (d *decompressor) refillFrom(acc uint64, bits uint, at int) (uint64, uint, int) {
	d.acc, d.bits, d.at = acc, bits, at
	d.refill()
	return d.acc, d.bits, d.at
}

// endSymbols ends the block if that is what the entry says, which is no symbol.
func (d *decompressor) endSymbols(e entry, acc uint64, bits uint, at int) error {
	if e&isEnd == 0 {
		return errDeflate
	}
	d.kind = betweenBlocks
	acc, bits = e.drop(acc, bits)
	return d.leaveLoop(acc, bits, at)
}

// leaveLoop takes the state of a loop that had it in registers. It is an error if that took bits behind the data.
func (d *decompressor) leaveLoop(acc uint64, bits uint, at int) error {
	if d.acc, d.bits, d.at = acc, bits, at; d.overrun() {
		return errDeflate
	}
	return nil
}

// further is the entry of the further table that e names, or e if it names none.
func (e entry) further(table []entry, acc uint64) entry {
	if e&isTable == 0 {
		return e
	}
	return table[e.place()+uint32(acc)&e.mask()]
}

// drop drops the entry's bits.
func (e entry) drop(acc uint64, bits uint) (uint64, uint) {
	return acc >> (e & entryBits), bits - uint(e&entryBits)
}

// added is what the bits behind the code of a length or of a distance add to its base.
func (e entry) added(acc uint64) int { return int(acc & (1<<(e&entryBits) - 1) >> e.codeBits()) }

// copyMatch copies length bytes from before w to w, and up to 15 more.
func copyMatch(p unsafe.Pointer, w, from, length int) {
	switch distance := w - from; {
	case distance >= 8:
		storeWord(p, w, loadWord(p, from))
		storeWord(p, w+8, loadWord(p, from+8))
		for i := 16; i < length; i += 8 {
			storeWord(p, w+i, loadWord(p, from+i))
		}
	case distance == 1:
		v := uint64(*(*byte)(unsafe.Add(p, from))) * 0x0101010101010101
		for i := 0; i < length; i += 8 {
			storeWord(p, w+i, v)
		}
	default: // what is loaded behind the first bytes was not written yet: the next turn writes it again
		for i := 0; i < length; i += distance {
			storeWord(p, w+i, loadWord(p, from+i))
		}
	}
}
