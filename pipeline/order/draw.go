package order

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// Key is the part of a draw that all samples share: who draws, under which seed.
type Key [2]uint32

// NewKey returns the key of the op at path, as "RandomResizedCrop/0": the op's class and how many of that class came
// before it, for every level of nesting. So inserting an op does not move the draws of another class. It is the first
// two little-endian words of SHA-256("feedwater draw 1\x00" ‖ seed, 8 bytes little-endian ‖ path).
func NewKey(seed uint64, path string) Key {
	b := binary.LittleEndian.AppendUint64([]byte("feedwater draw 1\x00"), seed)
	h := sha256.Sum256(append(b, path...))
	return Key{binary.LittleEndian.Uint32(h[0:]), binary.LittleEndian.Uint32(h[4:])}
}

// Sample is the part of a draw that all ops share: one appearance of one sample.
type Sample struct {
	// Epoch counts from 0.
	Epoch uint32
	// Index is the sample's place in the snapshot.
	Index uint32
	// Repeat tells the appearances of one index in one epoch apart.
	Repeat uint32
}

// Block returns four random words, Philox4x32-10 of the counter (block, epoch, index, repeat). Each op gives each of
// its draws a fixed place in a fixed block.
func (k Key) Block(s Sample, block uint32) [4]uint32 {
	return philox([4]uint32{block, s.Epoch, s.Index, s.Repeat}, k)
}

// Unit makes a float32 in [0, 1) of a random word: its upper 24 bits, times 2⁻²⁴.
func Unit(x uint32) float32 { return float32(float32(x>>8) * (1.0 / (1 << 24))) }

// Uniform makes a float32 in [a, b] of a random word, as torch's uniform_ does: Unit(x)·(b−a)+a with b−a rounded to
// float32 and one rounding for the rest. Rounding may reach b.
func Uniform(x uint32, a, b float32) float32 { return Fused(Unit(x), b-a, a) }

// Below makes an integer in [0, n) of a random word: the upper half of the 64-bit product x·n. n must not be 0.
func Below(x, n uint32) uint32 {
	h, _ := bits.Mul32(x, n)
	return h
}
