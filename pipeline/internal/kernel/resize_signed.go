package kernel

import "encoding/binary"

// The scalar passes for weights of which some are negative: as for bounded ones, but sums begin at lift, so that none
// is negative and borrows from its neighbour in the word, and a table clips them.

const (
	lift     = 1 << 30 // 256 << WeightBits
	bothLift = (lift+weightHalf)<<32 | (lift + weightHalf)
	// The lower half of a word of dot needs the lift alone.
	dotLift = (lift+weightHalf)<<32 | lift
)

// clips is clip of all that a lifted sum's upper bits can be.
var clips = func() (t [1024]byte) {
	for i := range t {
		t[i] = clip(int32(i) - lift>>WeightBits)
	}
	return t
}()

// liftable tells whether all lifted sums, of any part of the products with weights, stay in 0 … 2³²−1.
func (t *Taps) liftable() bool {
	for i, n := range t.Count {
		above, below := 0, 0
		for _, w := range t.Weights[i*t.Stride:][:n] {
			above, below = above+int(max(w, 0)), below-int(min(w, 0))
		}
		if 255*below > lift || 255*above+lift+weightHalf >= 1<<32 {
			return false
		}
	}
	return true
}

// verticalLifted is Vertical.Row for liftable taps and len(dst) ≥ 8; the last eight samples overlap the ones before.
func verticalLifted(dst, src []byte, stride int, weights []int32) {
	verticalLifted8(dst, src, stride, weights)
	if rest := len(dst) - 8; rest&7 != 0 {
		verticalLifted8(dst[rest:], src[rest:], stride, weights)
	}
}

func verticalLifted8(dst, src []byte, stride int, weights []int32) {
	for x := 0; x <= len(dst)-8; x += 8 {
		var a, b, c, d uint64 = bothLift, bothLift, bothLift, bothLift
		p := x
		for _, w := range weights {
			if p < 0 || p >= len(src)-7 {
				panic(shortSlice)
			}
			k, v := uint64(int64(w)), binary.LittleEndian.Uint64(src[p:p+8])
			a += v & bothMask * k
			b += v >> 8 & bothMask * k
			c += v >> 16 & bothMask * k
			d += v >> 24 & bothMask * k
			p += stride
		}
		to := (*[8]byte)(dst[x:])
		to[0], to[4] = clipped(a)
		to[1], to[5] = clipped(b)
		to[2], to[6] = clipped(c)
		to[3], to[7] = clipped(d)
	}
}

// clipped takes the samples out of two sums.
func clipped(sums uint64) (low, high byte) {
	return clips[sums>>WeightBits&1023], clips[sums>>(WeightBits+32)]
}

// lifted is Rows for liftable taps, column by column.
func (h *Horizontal) lifted(dst []byte, dstStride int, src []byte, srcStride, n int) {
	t, c := h.taps, column{dstStride: dstStride, srcStride: srcStride, n: n}
	if h.flipY {
		c.first, c.dstStride = (n-1)*dstStride, -dstStride
	}
	for i, count := range t.Count {
		c.lifted(dst[3*h.column(i):], src[3*int(t.First[i]):], t.Weights[i*t.Stride:][:(count+1)&^1])
	}
}

func (c *column) lifted(dst, src []byte, weights []int32) {
	from, to, fromEnd := uint32(0), uint32(c.first), len(src)-5
	for n := c.n; n > 0; n-- {
		var r, g, b uint64 = dotLift, dotLift, dotLift
		p := int(from)
		for w := weights; len(w) >= 2; w = w[2:] {
			if p < 0 || p >= fromEnd {
				panic(shortSlice)
			}
			k := uint64(int64(w[1])) + uint64(int64(w[0]))<<32
			r += dot(src[p], src[p+3], k)
			g += dot(src[p+1], src[p+4], k)
			b += dot(src[p+2], src[p+5], k)
			p += 6
		}
		d := (*[3]byte)(dst[to:])
		d[0], d[1], d[2] = clips[r>>dotBits], clips[g>>dotBits], clips[b>>dotBits]
		from, to = from+uint32(c.srcStride), to+uint32(c.dstStride)
	}
}
