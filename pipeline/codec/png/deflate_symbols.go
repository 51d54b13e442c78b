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
)

// decodeSymbols decodes symbols of a block with Huffman codes until limit is reached, or the block ends. A turn of its loop takes literals while bits
// last, of at least a bit a byte, and a match: 56 + 258 bytes, and 15 that a copy may write too many.
func (d *decompressor) decodeSymbols(window []byte, w, limit int) (int, error) {
	window = window[:limit+windowSlack]
	p, s := unsafe.Pointer(unsafe.SliceData(window)), unsafe.Pointer(unsafe.SliceData(d.src))
	acc, bits, at := d.acc, d.bits, d.at
	safe := len(d.src) - 8
	literals, distances := &d.codes.literals, &d.codes.distances
next:
	for w < limit {
		if at <= safe {
			acc |= loadWord(s, at) << (bits & 63)
			at += int((63 - bits) >> 3)
			bits |= 56
		} else {
			if d.acc, d.bits, d.at = acc, bits, at; d.overrun() {
				return w, errDeflate
			}
			d.refill()
			acc, bits, at = d.acc, d.bits, d.at
		}
		e := literals[acc&(1<<literalRoot-1)]
		for e&isLiteral != 0 {
			acc >>= e & entryBits
			bits -= uint(e & entryBits)
			binary.LittleEndian.PutUint16((*[2]byte)(unsafe.Add(p, w))[:], uint16(e>>8))
			w += int(e >> 24 & 3)
			if bits < literalBits {
				continue next
			}
			e = literals[acc&(1<<literalRoot-1)]
		}
		if e&isOther != 0 {
			if e&isTable != 0 {
				acc >>= literalRoot
				bits -= literalRoot
				e = literals[e.place()+uint32(acc)&e.mask()]
			}
			if e&(isLiteral|isOther) != 0 {
				acc >>= e & entryBits
				bits -= uint(e & entryBits)
				if e&isLiteral != 0 {
					*(*byte)(unsafe.Add(p, w)) = byte(e >> 8)
					w++
					continue
				}
				if e&isEnd == 0 {
					return w, errDeflate
				}
				d.kind = betweenBlocks
				break
			}
		}
		if bits < matchBits+distanceBits {
			if at <= safe {
				acc |= loadWord(s, at) << (bits & 63)
				at += int((63 - bits) >> 3)
				bits |= 56
			} else {
				d.acc, d.bits, d.at = acc, bits, at
				d.refill()
				acc, bits, at = d.acc, d.bits, d.at
			}
		}
		n := e & entryBits
		length := e.lengthBase() + int(acc&(1<<n-1)>>e.codeBits())
		acc >>= n
		bits -= uint(n)
		e = distances[acc&(1<<distanceRoot-1)]
		if e&isOther != 0 {
			if e&isTable == 0 {
				return w, errDeflate
			}
			acc >>= distanceRoot
			bits -= distanceRoot
			if e = distances[e.place()+uint32(acc)&e.mask()]; e&isOther != 0 {
				return w, errDeflate
			}
		}
		n = e & entryBits
		from := w - e.distanceBase() - int(acc&(1<<n-1)>>e.codeBits())
		acc >>= n
		bits -= uint(n)
		if from < 0 {
			return w, errDeflate
		}
		copyMatch(p, w, from, length)
		w += length
	}
	if d.acc, d.bits, d.at = acc, bits, at; d.overrun() {
		return w, errDeflate
	}
	return w, nil
}

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
