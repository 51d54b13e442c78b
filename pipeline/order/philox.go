package order

import "math/bits"

// philox is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3; SC 2011).
func philox(c [4]uint32, k [2]uint32) [4]uint32 {
	for range 10 {
		h0, l0 := bits.Mul32(0xD2511F53, c[0])
		h1, l1 := bits.Mul32(0xCD9E8D57, c[2])
		c = [4]uint32{h1 ^ c[1] ^ k[0], l1, h0 ^ c[3] ^ k[1], l0}
		k[0] += 0x9E3779B9
		k[1] += 0xBB67AE85
	}
	return c
}
