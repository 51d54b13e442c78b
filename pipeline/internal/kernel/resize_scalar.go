package kernel

import "encoding/binary"

// The loops below are written so that the compiler drops all bounds checks but one per pixel, or per eight samples:
// slices of one length, or a check of the first and the last index in its own words.

const shortSlice = "kernel: short slice"

// Two samples at bits 0 and 32. A bounded sum stays below 2³⁰, so one 64-bit multiplication does both.
const (
	bothMask = 0x000000ff_000000ff
	bothHalf = weightHalf<<32 | weightHalf
)

// verticalScalar is Vertical.Row for bounded taps and len(dst) ≥ 8, eight samples at a time; the last eight overlap the
// ones before.
func verticalScalar(dst, src []byte, stride int, weights []int32) {
	pass := verticalMany
	switch {
	case len(weights) <= 2:
		pass = verticalTwo
	case len(weights) <= 4:
		pass = verticalFour
	}
	pass(dst, src, stride, weights)
	if rest := len(dst) - 8; rest&7 != 0 {
		pass(dst[rest:], src[rest:], stride, weights)
	}
}

func verticalTwo(dst, src []byte, stride int, weights []int32) {
	n := len(dst)
	s, u := src[:n], src[(len(weights)-1)*stride:][:n]
	k, m := uint64(weights[0]), uint64(0)
	if len(weights) == 2 {
		m = uint64(weights[1])
	}
	for x := 0; x <= n-8; x += 8 {
		v, w := binary.LittleEndian.Uint64(s[x:]), binary.LittleEndian.Uint64(u[x:])
		a := v&bothMask*k + w&bothMask*m + bothHalf
		b := v>>8&bothMask*k + w>>8&bothMask*m + bothHalf
		c := v>>16&bothMask*k + w>>16&bothMask*m + bothHalf
		d := v>>24&bothMask*k + w>>24&bothMask*m + bothHalf
		binary.LittleEndian.PutUint64(dst[x:], join8(a, b, c, d))
	}
}

func verticalFour(dst, src []byte, stride int, weights []int32) {
	n := len(dst)
	s0, s1 := src[:n], src[stride:][:n]
	s2, s3 := src[2*stride:][:n], src[(len(weights)-1)*stride:][:n]
	k0, k1, k2, k3 := uint64(weights[0]), uint64(weights[1]), uint64(weights[2]), uint64(0)
	if len(weights) == 4 {
		k3 = uint64(weights[3])
	}
	for x := 0; x <= n-8; x += 8 {
		t, u := binary.LittleEndian.Uint64(s0[x:]), binary.LittleEndian.Uint64(s1[x:])
		v, w := binary.LittleEndian.Uint64(s2[x:]), binary.LittleEndian.Uint64(s3[x:])
		a := t&bothMask*k0 + u&bothMask*k1 + v&bothMask*k2 + w&bothMask*k3 + bothHalf
		b := t>>8&bothMask*k0 + u>>8&bothMask*k1 + v>>8&bothMask*k2 + w>>8&bothMask*k3 + bothHalf
		c := t>>16&bothMask*k0 + u>>16&bothMask*k1 + v>>16&bothMask*k2 + w>>16&bothMask*k3 + bothHalf
		d := t>>24&bothMask*k0 + u>>24&bothMask*k1 + v>>24&bothMask*k2 + w>>24&bothMask*k3 + bothHalf
		binary.LittleEndian.PutUint64(dst[x:], join8(a, b, c, d))
	}
}

func verticalMany(dst, src []byte, stride int, weights []int32) {
	for x := 0; x <= len(dst)-8; x += 8 {
		var a, b, c, d uint64 = bothHalf, bothHalf, bothHalf, bothHalf
		p := x
		for _, w := range weights {
			if p < 0 || p >= len(src)-7 {
				panic(shortSlice)
			}
			k, v := uint64(w), uint64(src[p])|uint64(src[p+1])<<8|uint64(src[p+2])<<16|uint64(src[p+3])<<24|
				uint64(src[p+4])<<32|uint64(src[p+5])<<40|uint64(src[p+6])<<48|uint64(src[p+7])<<56
			a += v & bothMask * k
			b += v >> 8 & bothMask * k
			c += v >> 16 & bothMask * k
			d += v >> 24 & bothMask * k
			p += stride
		}
		binary.LittleEndian.PutUint64(dst[x:], join8(a, b, c, d))
	}
}

// join8 takes the bytes out of eight sums.
func join8(a, b, c, d uint64) uint64 {
	return a>>WeightBits&bothMask | b>>WeightBits&bothMask<<8 | c>>WeightBits&bothMask<<16 | d>>WeightBits&bothMask<<24
}

// verticalClipped is Vertical.Row for all taps and lengths.
func verticalClipped(dst, src []byte, stride int, weights []int32) {
	for x := range dst {
		sum := int32(weightHalf)
		for j, w := range weights {
			sum += int32(src[j*stride+x]) * w
		}
		dst[x] = clip(sum >> WeightBits)
	}
}

func clip(x int32) byte { return byte(max(0, min(x, 255))) }

// scalar is Rows for bounded taps: column by column, so that weights stay in registers over the rows. Weights behind
// Count are 0 and src has bytes behind its end, so taps are done in twos and fours.
func (h *Horizontal) scalar(dst []byte, dstStride int, src []byte, srcStride, n int) {
	t, c := h.taps, column{dstStride: dstStride, srcStride: srcStride, n: n}
	if h.flipY {
		c.first, c.dstStride = (n-1)*dstStride, -dstStride
	}
	for i, count := range t.Count {
		d, s, w := dst[3*h.column(i):], src[3*int(t.First[i]):], t.Weights[i*t.Stride:]
		switch {
		case count <= 2:
			c.two(d, s, swap(w))
		case count <= 4:
			c.four(d, s, swap(w), swap(w[2:]))
		default:
			c.many(d, s, w[:(count+1)&^1])
		}
	}
}

// column makes n pixels below each other. dst begins with the column, src with its first tap; the first pixel is at
// dst[first]. Offsets are uint32, which wraps where rows go upwards and spares the check for negative ones.
type column struct{ first, dstStride, srcStride, n int }

// dot makes the sum of two products with one multiplication: x0·w0 + x1·w1 stand in the upper half of (x0 +
// x1<<32)·(w1 + w0<<32). In the lower half stands x0·w1, and the sum of those over all taps is bounded too, so nothing
// is carried over.
func dot(x0, x1 byte, swapped uint64) uint64 { return (uint64(x0) | uint64(x1)<<32) * swapped }

// swap joins two weights for dot.
func swap(w []int32) uint64 { return uint64(w[1]) | uint64(w[0])<<32 }

const (
	dotHalf = weightHalf << 32
	dotBits = WeightBits + 32
)

func (c *column) two(dst, src []byte, w uint64) {
	from, to, fromStep, toStep := uint32(0), uint32(c.first), uint32(c.srcStride), uint32(c.dstStride)
	fromEnd, toEnd := len(src)-5, len(dst)-2
	for n := c.n; n > 0; n-- {
		p, q := int(from), int(to)
		if p >= fromEnd || q >= toEnd {
			panic(shortSlice)
		}
		dst[q] = byte((dot(src[p], src[p+3], w) + dotHalf) >> dotBits)
		dst[q+1] = byte((dot(src[p+1], src[p+4], w) + dotHalf) >> dotBits)
		dst[q+2] = byte((dot(src[p+2], src[p+5], w) + dotHalf) >> dotBits)
		from, to = from+fromStep, to+toStep
	}
}

func (c *column) four(dst, src []byte, w, v uint64) {
	from, to, fromStep, toStep := uint32(0), uint32(c.first), uint32(c.srcStride), uint32(c.dstStride)
	fromEnd, toEnd := len(src)-11, len(dst)-2
	for n := c.n; n > 0; n-- {
		p, q := int(from), int(to)
		if p >= fromEnd || q >= toEnd {
			panic(shortSlice)
		}
		dst[q] = byte((dot(src[p], src[p+3], w) + dot(src[p+6], src[p+9], v) + dotHalf) >> dotBits)
		dst[q+1] = byte((dot(src[p+1], src[p+4], w) + dot(src[p+7], src[p+10], v) + dotHalf) >> dotBits)
		dst[q+2] = byte((dot(src[p+2], src[p+5], w) + dot(src[p+8], src[p+11], v) + dotHalf) >> dotBits)
		from, to = from+fromStep, to+toStep
	}
}

func (c *column) many(dst, src []byte, weights []int32) {
	from, to, fromEnd := uint32(0), uint32(c.first), len(src)-5
	for range c.n {
		var r, g, b uint64 = dotHalf, dotHalf, dotHalf
		p := int(from)
		for w := weights; len(w) >= 2; w = w[2:] {
			if p < 0 || p >= fromEnd {
				panic(shortSlice)
			}
			k := swap(w)
			r += dot(src[p], src[p+3], k)
			g += dot(src[p+1], src[p+4], k)
			b += dot(src[p+2], src[p+5], k)
			p += 6
		}
		d := (*[3]byte)(dst[to:])
		d[0], d[1], d[2] = byte(r>>dotBits), byte(g>>dotBits), byte(b>>dotBits)
		from, to = from+uint32(c.srcStride), to+uint32(c.dstStride)
	}
}

// clipped is Rows for all taps.
func (h *Horizontal) clipped(dst []byte, dstStride int, src []byte, srcStride, n int) {
	t := h.taps
	for y := range n {
		d, s := dst[y*dstStride:], src[y*srcStride:]
		if h.flipY {
			d = dst[(n-1-y)*dstStride:]
		}
		for i, count := range t.Count {
			for channel := range 3 {
				sum := int32(weightHalf)
				for j, w := range t.Weights[i*t.Stride:][:count] {
					sum += int32(s[3*(int(t.First[i])+j)+channel]) * w
				}
				d[3*h.column(i)+channel] = clip(sum >> WeightBits)
			}
		}
	}
}
