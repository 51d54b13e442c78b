package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// last moves the position i on by a group, so that the last group ends at n, unless it has just done that. It jumps to again for one more group.
func last(i, n GPVirtual, group int, again string) {
	ADDQ(U8(group), i)
	rest := GP64()
	LEAQ(Mem{Base: i, Disp: group}, rest)
	CMPQ(rest, n)
	JLE(LabelRef(again))
	CMPQ(i, n)
	JGE(LabelRef("done"))
	LEAQ(Mem{Base: n, Disp: -group}, i)
	JMP(LabelRef(again))
}

// upsample doubles 16 samples at a time in words: each is 9 parts of the nearest one, 3 of each of two beside it and 1 of the
// diagonal one, in two steps.
func upsample() {
	eight := asm.Words("upsample8", 8)
	TEXT("upsampleRow", NOSPLIT, "func(dst, near, far *byte, n int)")
	Doc("upsampleRow doubles n ≥ 16 samples; near and far point at the neighbours before the first ones, and have one behind the last ones.")
	Pragma("noescape")
	dst, near, far, n := asm.Pointer("dst"), asm.Pointer("near"), asm.Pointer("far"), asm.Pointer("n")
	i := GP64()
	XORQ(i, i)
	Label("group")
	load := func(p Register, disp int) VecVirtual {
		v := YMM()
		VPMOVZXBW(Mem{Base: p, Index: i, Scale: 1, Disp: disp}, v)
		return v
	}
	thrice := func(v VecVirtual) VecVirtual {
		t := YMM()
		VPADDW(v, v, t)
		VPADDW(v, t, t)
		return t
	}
	a := load(near, 1)
	both := thrice(load(far, 1))
	VPADDW(a, both, both)
	VPADDW(eight, both, both)
	var out [2]VecVirtual
	for k := range out {
		out[k] = thrice(load(near, 2*k))
		VPADDW(load(far, 2*k), out[k], out[k])
		VPADDW(both, out[k], out[k])
		VPSRLW(U8(3), out[k], out[k])
		VPADDW(a, out[k], out[k])
		VPSRLW(U8(1), out[k], out[k])
	}
	VPSLLW(U8(8), out[1], out[1])
	VPOR(out[0], out[1], out[1])
	VMOVDQU(out[1], Mem{Base: dst, Index: i, Scale: 2})
	last(i, n, 16, "group")
	Label("done")
	VZEROUPPER()
	RET()
}

// color converts 32 pixels at a time, in words: (v·k) >> 8 is the upper half of (v << 8)·k.
func color() {
	ky, kr, kgu, kgv, kb := asm.Words("colorY", 19077), asm.Words("colorR", 26149), asm.Words("colorGU", 6419), asm.Words("colorGV", 13320), asm.Words("colorB", 33050)
	r0, g0, b0 := asm.Words("colorR0", 14234), asm.Words("colorG0", 8708), asm.Words("colorB0", 17685)
	mask := interleave()
	TEXT("colorRow", NOSPLIT, "func(dst, y, cb, cr *byte, n int)")
	Doc("colorRow converts n ≥ 32 pixels to RGB.")
	Pragma("noescape")
	dst, py, pu, pv, n := asm.Pointer("dst"), asm.Pointer("y"), asm.Pointer("cb"), asm.Pointer("cr"), asm.Pointer("n")
	i, zero := GP64(), YMM()
	XORQ(i, i)
	VPXOR(zero, zero, zero)
	Label("group")
	var rgb [3]VecVirtual
	for half, unpack := range []func(...Op){
		func(o ...Op) { VPUNPCKLBW(o[0], o[1], o[2]) },
		func(o ...Op) { VPUNPCKHBW(o[0], o[1], o[2]) },
	} {
		scaled := func(p Register) VecVirtual { // times 256
			v := YMM()
			VMOVDQU(Mem{Base: p, Index: i, Scale: 1}, v)
			unpack(v, zero, v)
			return v
		}
		times := func(v VecVirtual, k Mem) VecVirtual {
			t := YMM()
			VPMULHUW(k, v, t)
			return t
		}
		y, u, v := times(scaled(py), ky), scaled(pu), scaled(pv)
		r := times(v, kr)
		VPADDW(y, r, r)
		VPSUBW(r0, r, r)
		VPSRAW(U8(6), r, r)
		g, t := times(u, kgu), times(v, kgv)
		VPADDW(t, g, g)
		VPSUBW(g, y, g)
		VPADDW(g0, g, g)
		VPSRAW(U8(6), g, g)
		b := times(u, kb)
		VPADDUSW(y, b, b)
		VPSUBUSW(b0, b, b)
		VPSRLW(U8(6), b, b)
		for c, x := range []VecVirtual{r, g, b} {
			if half == 0 {
				rgb[c] = x
			} else {
				VPACKUSWB(x, rgb[c], rgb[c])
			}
		}
	}
	storePixels(rgb, mask, dst, i)
	last(i, n, 32, "group")
	Label("done")
	VZEROUPPER()
	RET()
}

// interleave makes the shuffles that put byte p of channel c at byte 3p+c of 48 bytes: mask[o][c] for the o-th 16 bytes.
func interleave() (mask [3][3]Mem) {
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

// storePixels writes 32 pixels at dst+3i.
func storePixels(rgb [3]VecVirtual, mask [3][3]Mem, dst, i Register) {
	to := GP64()
	LEAQ(Mem{Base: i, Index: i, Scale: 2}, to)
	ADDQ(dst, to)
	var out [3]VecVirtual
	for o := range out {
		out[o] = YMM()
		VPSHUFB(mask[o][0], rgb[0], out[o])
		for c := 1; c < 3; c++ {
			t := YMM()
			VPSHUFB(mask[o][c], rgb[c], t)
			VPOR(t, out[o], out[o])
		}
	}
	a, c := YMM(), YMM()
	VINSERTI128(U8(1), out[1].AsX(), out[0], a)
	VMOVDQU(a, Mem{Base: to})
	VPERM2I128(U8(0x31), out[2], out[1], c)
	VPBLENDD(U8(0xf0), out[0], out[2], out[2])
	VMOVDQU(out[2], Mem{Base: to, Disp: 32})
	VMOVDQU(c, Mem{Base: to, Disp: 64})
}
