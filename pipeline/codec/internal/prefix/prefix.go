// Package prefix has what is known of a canonical prefix code by the lengths of its symbols' codes, as DEFLATE and lossless WebP use them: codes of a
// length count up in the order of their symbols, and shorter ones come first. Codes are read with their first bit lowest, "in reverse" below.
//
// Whoever reads a code decides which ones it takes. Lengths are MaxBits at most; a longer one panics. Nothing is allocated but by Lengths, which is for
// those who write codes.
package prefix

import "math/bits"

// MaxBits is how many bits a code has at most.
const MaxBits = 15

// Counts is how many symbols have codes of each length; those of length 0 have none.
type Counts [MaxBits + 1]int

// Count counts the lengths of symbols' codes.
func Count(lengths []uint8) (c Counts) {
	for _, n := range lengths {
		c[n]++
	}
	return c
}

// Unused is how many codes of MaxBits bits are left over: 0 where the code is complete, negative where there are more codes than it can have.
func (c *Counts) Unused() int {
	unused := 1
	for _, n := range c[1:] {
		if unused = 2*unused - n; unused < 0 {
			return -1
		}
	}
	return unused
}

// SortSymbols writes the symbols that have codes to dst, in the order of their codes. The counts are those of lengths; dst has room for as many.
func (c *Counts) SortSymbols(dst []uint16, lengths []uint8) {
	var next [MaxBits + 2]int
	for n := 1; n <= MaxBits; n++ {
		next[n+1] = next[n] + c[n]
	}
	for s, n := range lengths {
		if n > 0 {
			dst[next[n]] = uint16(s)
			next[n]++
		}
	}
}

// TableBits is how many bits select an entry of a further table, which codes of the same first root bits share: the first of them has n bits, and as
// many codes of n bits are left, that one included.
func (c *Counts) TableBits(root, n, left int) int {
	size := n - root
	for room := left; room < 1<<size && size+root < MaxBits; {
		size++
		room = room<<1 + c[size+root]
	}
	return size
}

// NextCode adds 1 to a code of n bits in reverse. Behind the last one comes 0.
func NextCode(code uint32, n int) uint32 {
	zeros := ^code & (1<<n - 1)
	if zeros == 0 {
		return 0
	}
	top := uint32(1) << (bits.Len32(zeros) - 1)
	return code&(top-1) | top
}
