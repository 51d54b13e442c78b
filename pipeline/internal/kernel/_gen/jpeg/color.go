package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// The colour conversion in 16 bits, exact: (k*c + 2^15) >> 16 = ((2c*k >> 16) + 1) >> 1, with the part of the factor
// that a word cannot hold added apart: 91881 = 65536 + 26345, 116130 = 2*65536 - 14942, -46802 = 18734 - 65536.
func color() {
	c128, one := asm.Words("colorC128", 128), asm.Words("colorOne", 1)
	kr, kb, kg := asm.Words("colorR", 26345), asm.Words("colorB", -14942), asm.Words("colorG", -22554, 18734)
	half := asm.Dwords("colorHalf", 1<<15)
	name, doc, store := "colorRow", "colorRow converts n >= 32 pixels.", interleave
	if asm.Lanes == 4 {
		name, doc, store = "colorRowWide", "colorRowWide converts n >= 64 pixels.", interleaveWide
	}
	TEXT(name, NOSPLIT, "func(dst, y, cb, cr *byte, n int)")
	Doc(doc)
	dst, py, pb, pr := Load(Param("dst"), GP64()), Load(Param("y"), GP64()), Load(Param("cb"), GP64()), Load(Param("cr"), GP64())
	n := Load(Param("n"), GP64()).(GPVirtual)
	i := GP64()
	XORQ(i, i)
	storeAll := store()
	zero := asm.Vector()
	asm.Zero(zero)

	Label("group")
	var rgb [3]vec
	for h, un := range []unpack{VPUNPCKLBW, VPUNPCKHBW} {
		y, b, r := asm.Vector(), asm.Vector(), asm.Vector()
		for _, v := range []struct {
			to   vec
			from Register
		}{{y, py}, {b, pb}, {r, pr}} {
			asm.Move(Mem{Base: v.from, Index: i, Scale: 1}, v.to)
			un(zero, v.to, v.to)
		}
		VPSUBW(c128, b, b)
		VPSUBW(c128, r, r)
		gl, gh := asm.Vector(), asm.Vector()
		VPUNPCKLWD(r, b, gl)
		VPUNPCKHWD(r, b, gh)
		for _, g := range []vec{gl, gh} {
			VPMADDWD(kg, g, g)
			VPADDD(half, g, g)
			VPSRAD(U8(16), g, g)
		}
		VPACKSSDW(gh, gl, gl)
		VPSUBW(r, gl, gl)
		VPADDW(y, gl, gl)

		r2, b2 := asm.Vector(), asm.Vector()
		VPADDW(r, r, r2)
		VPMULHW(kr, r2, r2)
		VPADDW(one, r2, r2)
		VPSRAW(U8(1), r2, r2)
		VPADDW(r, r2, r2)
		VPADDW(y, r2, r2)
		VPADDW(b, b, b)
		VPMULHW(kb, b, b2)
		VPADDW(one, b2, b2)
		VPSRAW(U8(1), b2, b2)
		VPADDW(b, b2, b2)
		VPADDW(y, b2, b2)
		for c, v := range []vec{r2, gl, b2} {
			if h == 0 {
				rgb[c] = v
			} else {
				VPACKUSWB(v, rgb[c], rgb[c])
			}
		}
	}
	to := GP64()
	LEAQ(Mem{Base: i, Index: i, Scale: 2}, to)
	ADDQ(dst, to)
	storeAll(rgb, to)
	last(i, n, "group")
	Label("done")
	VZEROUPPER()
	RET()
}

// interleave returns what stores pixels of three channels.
func interleave() func(rgb [3]vec, to Register) {
	mask := interleaved()
	return func(rgb [3]vec, to Register) {
		var out [3]vec
		for o := range out {
			out[o] = YMM()
			VPSHUFB(mask[o][0], rgb[0], out[o])
			for c := 1; c < 3; c++ {
				t := YMM()
				VPSHUFB(mask[o][c], rgb[c], t)
				VPOR(t, out[o], out[o])
			}
		}
		storePixels(out, to)
	}
}

// interleaveWide is interleave for AVX-512: byte j of the o-th 64 is of pixel (64o+j)/3, of each channel by turns.
func interleaveWide() func(rgb [3]vec, to Register) {
	var pixel [3]vec
	var turns [3][3]Register
	for o := range pixel {
		var b [64]byte
		var mask [3]uint64
		for j := range b {
			b[j] = byte((64*o + j) / 3)
			mask[(64*o+j)%3] |= 1 << j
		}
		pixel[o] = ZMM()
		VMOVDQU64(asm.All("interleavePixel"+string(rune('0'+o)), b), pixel[o])
		for c := 1; c < 3; c++ {
			k, g := K(), GP64()
			MOVQ(U64(mask[c]), g)
			KMOVQ(g, k)
			turns[o][c] = k
		}
	}
	return func(rgb [3]vec, to Register) {
		for o := range pixel {
			out := ZMM()
			VPERMB(rgb[0], pixel[o], out)
			for c := 1; c < 3; c++ {
				VPERMB(rgb[c], pixel[o], turns[o][c], out)
			}
			VMOVDQU64(out, Mem{Base: to, Disp: 64 * o})
		}
	}
}

// interleaved makes the shuffles that put byte p of channel c at byte 3p+c of 48 bytes: mask[o][c] for the o-th 16
// bytes.
func interleaved() (mask [3][3]Mem) {
	for o := range 3 {
		for c := range 3 {
			var b [16]int
			for j := range b {
				b[j] = 0x80
				if at := 16*o + j; at%3 == c {
					b[j] = at / 3
				}
			}
			mask[o][c] = asm.Bytes("interleave"+string(rune('0'+o))+"RGB"[c:c+1], b)
		}
	}
	return mask
}

// storePixels writes 32 pixels: each lane of out holds 16 bytes of the 48 of its 16 pixels.
func storePixels(out [3]vec, to Register) {
	a, c := YMM(), YMM()
	VINSERTI128(U8(1), out[1].AsX(), out[0], a)
	VMOVDQU(a, Mem{Base: to})
	VPERM2I128(U8(0x31), out[2], out[1], c)
	VPBLENDD(U8(0xf0), out[0], out[2], out[2])
	VMOVDQU(out[2], Mem{Base: to, Disp: 32})
	VMOVDQU(c, Mem{Base: to, Disp: 64})
}

func grey() {
	var mask [3]Mem
	for o := range mask {
		var b [16]int
		for j := range b {
			b[j] = (16*o + j) / 3
		}
		mask[o] = asm.Bytes("triple"+string(rune('0'+o)), b)
	}
	TEXT("greyRow", NOSPLIT, "func(dst, y *byte, n int)")
	Doc("greyRow triples n >= 32 samples.")
	dst, py := Load(Param("dst"), GP64()), Load(Param("y"), GP64())
	n := Load(Param("n"), GP64()).(GPVirtual)
	i := GP64()
	XORQ(i, i)
	Label("group")
	y := YMM()
	VMOVDQU(Mem{Base: py, Index: i, Scale: 1}, y)
	var out [3]vec
	for o := range out {
		out[o] = YMM()
		VPSHUFB(mask[o], y, out[o])
	}
	to := GP64()
	LEAQ(Mem{Base: i, Index: i, Scale: 2}, to)
	ADDQ(dst, to)
	storePixels(out, to)
	last(i, n, "group")
	Label("done")
	VZEROUPPER()
	RET()
}
