package pipeline

import "hash/crc32"

// castagnoli is CRC-32C, the checksum of batches.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A shift appends n bytes to a CRC-32C without seeing what came before: crc(a‖b) = shift(crc(a), len b) ⊕ crc(b). It is
// the multiplication by x^(8n) modulo the polynomial, in the reflected bit order that CRCs are kept in.
type shift uint32

// newShift makes the shift for n bytes by squaring.
func newShift(n int) shift {
	s, square := shift(1<<31), shift(1<<23) // x^0, x^8
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			s = shift(square.appendTo(uint32(s)))
		}
		square = shift(square.appendTo(uint32(square)))
	}
	return s
}

// appendTo multiplies c by the shift's polynomial.
func (s shift) appendTo(c uint32) uint32 {
	var p uint32
	for b := uint32(s); b != 0; b <<= 1 {
		if b&(1<<31) != 0 {
			p ^= c
		}
		c = c>>1 ^ crc32.Castagnoli&-(c&1)
	}
	return p
}
