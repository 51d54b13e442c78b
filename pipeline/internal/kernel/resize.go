package kernel

import "math"

// The passes of a separable resampling as Pillow computes them: 22-bit weights, a rounded 8-bit result per pass.

//go:generate go -C _gen run ./resize -out ../resize_amd64.s -stubs ../resize_stubs_amd64.go -pkg kernel
//go:generate go -C _gen run ./resize -avx512 -out ../resize_avx512_amd64.s -stubs ../resize_avx512_stubs_amd64.go -pkg kernel

const (
	// WeightBits is the fixed-point precision of resampling weights: 1 is 1<<WeightBits.
	WeightBits = 22
	weightHalf = 1 << (WeightBits - 1)
	lowBits    = 11 // vector kernels cut a weight here
	lowMask    = 1<<lowBits - 1
)

// HorizontalRead is how many bytes behind the last pixel of the last row Horizontal.Rows may read.
const HorizontalRead = 16

// Taps are the weights of one axis. Output i is
//
//	clip((Σ source[First[i]+j]·Weights[i·Stride+j] + 1<<21) >> 22), j < Count[i],
//
// with sums in int32 and clip to 0 … 255. Weights behind Count are 0 up to Stride, which is a multiple of 4. Count is
// at least 1, and First[i]+Count[i] is at most Span, the length of the source.
type Taps struct {
	First, Count []int32
	Weights      []int32
	Stride       int
	Span         int
}

// bounded tells whether all sums stay in 0 … 255 by themselves.
func (t *Taps) bounded() bool {
	for i, n := range t.Count {
		sum := 0
		for _, w := range t.Weights[i*t.Stride:][:n] {
			if w < 0 {
				return false
			}
			sum += int(w)
		}
		if 255*sum+weightHalf >= 256<<WeightBits {
			return false
		}
	}
	return true
}

func (t *Taps) weights(i int) []int32 { return t.Weights[i*t.Stride:][:t.Count[i]] }

// Vertical is the pass along y. It is not safe for concurrent use.
type Vertical struct {
	vector  bool
	wide    bool // AVX-512
	fits    bool // packed is set
	bounded bool
	lifts   bool
	taps    *Taps
	packed  []int32 // as Weights, a pair of weights replaced by pack's dwords
}

// NewVertical returns a pass that uses the kernels of level.
func NewVertical(level string) *Vertical {
	return &Vertical{vector: Vector(level), wide: level == AVX512}
}

// Set takes the weights, which must not change until the next Set.
func (v *Vertical) Set(t *Taps) {
	v.taps = t
	v.fits = v.vector && v.pack()
	v.bounded = !v.fits && t.bounded()
	v.lifts = !v.fits && !v.bounded && t.liftable()
}

// pack cuts the weights for resizeVerticalAVX2: of each pair the first dword holds the upper parts as bytes, twice, and
// the second one the lower 16 bits, which are signed, as words. It returns false when a pair is too large for bytes, or
// for VPMADDUBSW, whose sums saturate at 16 bits: weights of much more than 1.
func (v *Vertical) pack() bool {
	weights := v.taps.Weights
	v.packed = grown(v.packed, len(weights))
	if n := len(weights); n >= 8 {
		return packVerticalAVX2(&v.packed[0], &weights[0], n) == 0
	}
	return packVertical(v.packed, weights)
}

// packVertical is pack in Go.
func packVertical(packed, w []int32) bool {
	fits := true
	for j := 0; j < len(w); j += 2 {
		a, b := (w[j]+1<<15)>>16, (w[j+1]+1<<15)>>16
		packed[j], packed[j+1] = (a&0xff|b<<8)&0xffff*0x10001, w[j]&0xffff|w[j+1]<<16
		fits = fits && max(a, b) < 128 && max(a, -a)+max(b, -b) <= 128
	}
	return fits
}

// mixes tells whether row i is a mix of two, whose weights have the sum 1: so are most rows of an enlargement.
func (v *Vertical) mixes(i int) bool {
	w := v.taps.weights(i)
	return v.vector && len(w) == 2 && min(w[0], w[1]) >= 0 && w[0]+w[1] == 1<<WeightBits
}

// Row makes row i. src begins at row First[i]; row j of it is the len(dst) samples at src[j*stride:]. Nothing behind
// the last of them is read. It panics when src is too short.
func (v *Vertical) Row(i int, dst, src []byte, stride int) {
	n := len(dst)
	if n == 0 {
		return
	}
	count := int(v.taps.Count[i])
	src = src[:(count-1)*stride+n]
	switch {
	case v.mixes(i) && v.wide && n >= 64:
		mixRowsAVX512(&dst[0], &src[0], &src[stride], int(v.taps.weights(i)[1]), n)
	case v.mixes(i) && n >= 32:
		mixRowsAVX2(&dst[0], &src[0], &src[stride], int(v.taps.weights(i)[1]), n)
	case v.fits && v.wide && n >= 64:
		resizeVerticalAVX512(&dst[0], &src[0], stride, &v.packed[i*v.taps.Stride], count, n)
	case v.fits && n >= 32:
		resizeVerticalAVX2(&dst[0], &src[0], stride, &v.packed[i*v.taps.Stride], count, n)
	case v.bounded && n >= 8:
		verticalScalar(dst, src, stride, v.taps.weights(i))
	case v.lifts && n >= 8:
		verticalLifted(dst, src, stride, v.taps.weights(i))
	default:
		verticalClipped(dst, src, stride, v.taps.weights(i))
	}
}

// Horizontal is the pass along x, on pixels of three samples. It is not safe for concurrent use.
type Horizontal struct {
	vector  bool
	wide    bool // AVX-512
	bounded bool
	lifts   bool
	flipX   bool
	flipY   bool
	taps    *Taps

	// Groups of four pixels for resizeHorizontalAVX2; the last group may overlap the one before.
	groups, pairs int
	places        []int32
	packed        []int32
}

// NewHorizontal returns a pass that uses the kernels of level.
func NewHorizontal(level string) *Horizontal {
	return &Horizontal{vector: Vector(level), wide: level == AVX512}
}

// Set takes the weights, which must not change until the next Set. With flipX the last pixel of a row comes first; with
// flipY the last row of each call of Rows comes first.
func (h *Horizontal) Set(t *Taps, flipX, flipY bool) {
	h.taps, h.flipX, h.flipY = t, flipX, flipY
	if h.vector && len(t.First) >= 4 {
		h.group()
	} else {
		h.bounded = t.bounded()
		h.lifts = !h.bounded && t.liftable()
	}
}

// Rows makes n rows, row y from src[y*srcStride:] to dst[y*dstStride:], or to dst[(n-1-y)*dstStride:] with flipY, and
// writes nothing but their pixels. Behind the last source pixel there must be HorizontalRead bytes; it panics when src
// or dst is too short.
func (h *Horizontal) Rows(dst []byte, dstStride int, src []byte, srcStride, n int) {
	width := len(h.taps.First)
	if n == 0 || width == 0 {
		return
	}
	dst = dst[:(n-1)*dstStride+3*width]
	src = src[:(n-1)*srcStride+3*h.taps.Span+HorizontalRead]
	switch {
	case h.vector && width >= 4:
		first, step := 0, dstStride
		if h.flipY {
			first, step = (n-1)*dstStride, -dstStride
		}
		rows := resizeHorizontalAVX2
		if h.wide {
			rows = resizeHorizontalAVX512
		}
		rows(&dst[first], step, &src[0], srcStride, n, &h.packed[0], &h.places[0], h.groups, h.pairs)
	case h.bounded && uint64(max(len(dst), len(src))) <= math.MaxUint32:
		h.scalar(dst, dstStride, src, srcStride, n)
	case h.lifts && uint64(max(len(dst), len(src))) <= math.MaxUint32:
		h.lifted(dst, dstStride, src, srcStride, n)
	default:
		h.clipped(dst, dstStride, src, srcStride, n)
	}
}

// column is where output i stands in a row.
func (h *Horizontal) column(i int) int {
	if h.flipX {
		return len(h.taps.First) - 1 - i
	}
	return i
}

// group lays weights and places out as resizeHorizontalAVX2 reads them. All pixels get the same number of tap pairs;
// where these would be read from too far behind the source's end, they begin earlier with weights of 0.
func (h *Horizontal) group() {
	t, width := h.taps, len(h.taps.First)
	most, latest := t.reach()
	h.groups, h.pairs = (width+3)/4, (most+1)/2
	h.places, h.packed = grown(h.places, 5*h.groups), grown(h.packed, 32*h.groups*h.pairs)
	weights := t.Weights[:width*t.Stride]
	x, step := 0, 1
	if h.flipX {
		x, step = width-1, -1
	}
	groupTapsAVX2(&h.places[0], &h.packed[0], &t.First[x], &weights[x*t.Stride], step, step*t.Stride, width, h.pairs)
	for x := 0; latest > h.lastPlace() && x < width; x++ {
		if int(t.First[x]) > h.lastPlace() {
			h.groupTaps(h.column(x) / 4)
			h.groupTaps(h.groups - 1) // it may overlap the one before
		}
	}
}

// reach returns the largest of Count and of First. It panics when taps are not what Taps promises.
func (t *Taps) reach() (most, latest int) {
	wrong, first, count := int32(0), int32(0), int32(0)
	for i, n := range t.Count[:len(t.First)] {
		f := t.First[i]
		wrong |= f | (n - 1) | (int32(t.Span) - n - f)
		first, count = max(first, f), max(count, n)
	}
	if wrong < 0 || int(count) > t.Stride {
		panic("kernel: taps outside of the source")
	}
	return int(count), int(first)
}

// lastPlace is the last source pixel from which all pairs can be read: 16 bytes from the first byte of every second one
// on, and no more than HorizontalRead of them behind the source's end.
func (h *Horizontal) lastPlace() int { return h.taps.Span - (h.pairs-1)/2*4 }

// groupTaps is what group does for group g.
func (h *Horizontal) groupTaps(g int) {
	base := min(4*g, len(h.taps.First)-4)
	packed := h.packed[32*h.pairs*g:][:32*h.pairs]
	clear(packed)
	h.places[5*g] = int32(3 * base)
	for q := range 4 {
		x := h.column(base + q)
		first := min(int(h.taps.First[x]), h.lastPlace())
		h.places[5*g+1+q&1*2+q>>1] = int32(3 * first)
		h.lay(packed[q&1*8+q>>1*4:], h.taps.weights(x), int(h.taps.First[x])-first)
	}
}

// join joins two weights' upper halves, and their lower ones, as words of a dword.
func join(a, b int32) (upper, lower int32) {
	return a>>lowBits&0xffff | b>>lowBits<<16, a&lowMask | b&lowMask<<16
}

// lay writes one pixel's weights, after skip zeros, four times each: once per channel, and once for the lane's unused
// dword.
func (h *Horizontal) lay(packed, weights []int32, skip int) {
	for i := skip &^ 1; i < skip+len(weights); i += 2 {
		var a, b int32
		if j := i - skip; j >= 0 {
			a = weights[j]
		}
		if j := i + 1 - skip; j < len(weights) {
			b = weights[j]
		}
		upper, lower := join(a, b)
		p := (*[20]int32)(packed[16*i:])
		p[0], p[1], p[2], p[3] = upper, upper, upper, upper
		p[16], p[17], p[18], p[19] = lower, lower, lower, lower
	}
}

// grown returns s with length n; its contents are undefined.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}
