package kernel

// The constants of the transform: round(c * 2^13).
const (
	idct0298 = 2446
	idct0390 = 3196
	idct0541 = 4433
	idct0765 = 6270
	idct0899 = 7373
	idct1175 = 9633
	idct1501 = 12299
	idct1847 = 15137
	idct1961 = 16069
	idct2053 = 16819
	idct2562 = 20995
	idct3072 = 25172
)

func idctScalar(dst []byte, stride int, blocks []Block, q *[64]uint16) {
	if len(blocks) == 0 {
		return
	}
	idctRoom(dst, stride, len(blocks))
	var w [64]int32
	for i := range blocks {
		idctColumns(&w, &blocks[i], q)
		idctRows(dst[8*i:], stride, &w)
	}
}

// saturate clamps v to 16 bits.
func saturate(v int32) int32 {
	if uint32(v+32768) > 65535 {
		v = v>>31 ^ 32767
	}
	return v
}

// clampByte clamps v to 0..255.
func clampByte(v int32) uint8 {
	if uint32(v) > 255 {
		v = ^(v >> 31)
	}
	return uint8(v)
}

// idctColumns is the first pass. It writes column c to w[8*c:].
func idctColumns(w *[64]int32, b *Block, q *[64]uint16) {
	for c := range 8 {
		o := (*[8]int32)(w[8*c:])
		r1, r2, r3, r4 := b[8+c], b[16+c], b[24+c], b[32+c]
		r5, r6, r7 := b[40+c], b[48+c], b[56+c]
		in0 := int32(b[c] * int16(q[c]))
		if r1|r2|r3|r4|r5|r6|r7 == 0 {
			v := flat(in0, b)
			o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7] = v, v, v, v, v, v, v, v
			continue
		}
		in1, in2, in3 := int32(r1*int16(q[8+c])), int32(r2*int16(q[16+c])), int32(r3*int16(q[24+c]))
		in4, in5 := int32(r4*int16(q[32+c])), int32(r5*int16(q[40+c]))
		in6, in7 := int32(r6*int16(q[48+c])), int32(r7*int16(q[56+c]))
		e0, e1, e2, e3 := idctEven(in0, in2, in4, in6, 1<<10)
		y3, y4 := idctRotate(in1, in3, in5, in7)
		o0, o1, o2, o3 := idctOdd(in1, in3, in5, in7, y3, y4)
		o[0], o[7] = saturate((e0+o3)>>11), saturate((e0-o3)>>11)
		o[1], o[6] = saturate((e1+o2)>>11), saturate((e1-o2)>>11)
		o[2], o[5] = saturate((e2+o1)>>11), saturate((e2-o1)>>11)
		o[3], o[4] = saturate((e3+o0)>>11), saturate((e3-o0)>>11)
	}
}

// idctRows is the second pass.
func idctRows(dst []byte, stride int, w *[64]int32) {
	for r := range 8 {
		e0, e1, e2, e3 := idctEven(w[r], w[16+r], w[32+r], w[48+r], 1<<17)
		in1, in3, in5, in7 := w[8+r], w[24+r], w[40+r], w[56+r]
		y3, y4 := idctRotate(in1, in3, in5, in7)
		o0, o1, o2, o3 := idctOdd(in1, in3, in5, in7, y3, y4)
		o := (*[8]byte)(dst[r*stride:])
		o[0], o[7] = clampByte((e0+o3)>>18+128), clampByte((e0-o3)>>18+128)
		o[1], o[6] = clampByte((e1+o2)>>18+128), clampByte((e1-o2)>>18+128)
		o[2], o[5] = clampByte((e2+o1)>>18+128), clampByte((e2-o1)>>18+128)
		o[3], o[4] = clampByte((e3+o0)>>18+128), clampByte((e3-o0)>>18+128)
	}
}

func idctEven(in0, in2, in4, in6, round int32) (e0, e1, e2, e3 int32) {
	z := (in2 + in6) * idct0541
	t2, t3 := z-in6*idct1847, z+in2*idct0765
	t0, t1 := int32(int16(in0+in4))<<13+round, int32(int16(in0-in4))<<13+round
	return t0 + t3, t1 + t2, t1 - t2, t0 - t3
}

// idctRotate makes the two sums that idctOdd shares.
func idctRotate(in1, in3, in5, in7 int32) (y3, y4 int32) {
	z3, z4 := int32(int16(in7+in3)), int32(int16(in5+in1))
	z5 := (z3 + z4) * idct1175
	return z5 - z3*idct1961, z5 - z4*idct0390
}

func idctOdd(in1, in3, in5, in7, y3, y4 int32) (o0, o1, o2, o3 int32) {
	a, b := (in7+in1)*idct0899, (in5+in3)*idct2562
	return in7*idct0298 - a + y3, in5*idct2053 - b + y4, in3*idct3072 - b + y3, in1*idct1501 - a + y4
}

// flat is the first pass of a column that has in0 alone.
func flat(in0 int32, b *Block) int32 {
	v := in0 << 2
	if uint32(v+32768) <= 65535 {
		return v
	}
	for i := 8; i < 64; i++ {
		if b[i] != 0 {
			return saturate(v)
		}
	}
	return int32(int16(v))
}
