package vp8

// What the inverse transform multiplies by, in 16 bits of fraction: √2·cos(π/8) less one, and √2·sin(π/8).
const (
	cosine = 20091
	sine   = 35468
)

func byCosine(v int32) int32 { return v*cosine>>16 + v }
func bySine(v int32) int32   { return v * sine >> 16 }

// inverseWalsh gives each of the 16 blocks of luma its first coefficient (section 14.3).
func inverseWalsh(in *[16]int16, out *[allBlocks][16]int16) {
	var m [16]int32
	for i := range 4 {
		a0, a1 := int32(in[i])+int32(in[12+i]), int32(in[4+i])+int32(in[8+i])
		a2, a3 := int32(in[4+i])-int32(in[8+i]), int32(in[i])-int32(in[12+i])
		m[i], m[8+i], m[4+i], m[12+i] = a0+a1, a0-a1, a3+a2, a3-a2
	}
	for i := range 4 {
		first := m[4*i] + 3
		a0, a1 := first+m[4*i+3], m[4*i+1]+m[4*i+2]
		a2, a3 := m[4*i+1]-m[4*i+2], first-m[4*i+3]
		out[4*i][0], out[4*i+1][0] = int16((a0+a1)>>3), int16((a3+a2)>>3)
		out[4*i+2][0], out[4*i+3][0] = int16((a0-a1)>>3), int16((a3-a2)>>3)
	}
}

// addFirst adds a block of which only the first coefficient is not 0.
func addFirst(p *plane, at int, first int16) {
	v := int32(first) + 4
	for y := range blockSide {
		addRow(p.samples[at+y*p.stride:], v, v, v, v)
	}
}

// addThree adds a block of whose coefficients only the first, the second, and the one below the first are not 0. libwebp calculates it
// in 32 bits, but all coefficients in 16.
func addThree(p *plane, at int, in *[16]int16) {
	first := int32(in[0]) + 4
	d1, c1 := byCosine(int32(in[1])), bySine(int32(in[1]))
	d4, c4 := byCosine(int32(in[4])), bySine(int32(in[4]))
	for y, v := range [blockSide]int32{first + d4, first + c4, first - c4, first - d4} {
		addRow(p.samples[at+y*p.stride:], v+d1, v+c1, v-c1, v-d1)
	}
}

// addRow adds eighths of values to a block's row.
func addRow(row []byte, a, b, c, d int32) {
	row = row[:blockSide]
	row[0] = clip(int32(row[0]) + a>>3)
	row[1] = clip(int32(row[1]) + b>>3)
	row[2] = clip(int32(row[2]) + c>>3)
	row[3] = clip(int32(row[3]) + d>>3)
}

// addAll adds a block of coefficients (section 14.4). As in libwebp's code for x86 sums have 16 bits.
func addAll(p *plane, at int, in *[16]int16) {
	var m [4][4]int32
	for i := range 4 {
		m[0][i], m[1][i], m[2][i], m[3][i] = inverse(int32(in[i]), int32(in[4+i]), int32(in[8+i]), int32(in[12+i]))
	}
	for y, r := range m {
		a, b, c, d := inverse(int32(int16(r[0]+4)), r[1], r[2], r[3])
		addRow(p.samples[at+y*p.stride:], a, b, c, d)
	}
}

// inverse is the transform of four values.
func inverse(v0, v1, v2, v3 int32) (a, b, c, d int32) {
	s, t := bySine(v1)-byCosine(v3), byCosine(v1)+bySine(v3)
	sum, difference := v0+v2, v0-v2
	return int32(int16(sum + t)), int32(int16(difference + s)), int32(int16(difference - s)), int32(int16(sum - t))
}

// differences are what the coefficients of a macroblock add to its prediction, no more than 1<<12: 16 rows of luma; and four of Cb, and of Cr,
// which are the upper half's, and beside it the lower half's.
type differences [24][16]int16

var noDifferences differences

// mostForVector is a magnitude of coefficients that 16 bits are enough for, whatever of a block they are.
const mostForVector = 1 << 13
