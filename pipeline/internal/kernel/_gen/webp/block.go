package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// transform is the inverse transform (section 14.4), of four blocks at once: a register has four words of each, of one row or one column.
func transform() {
	TEXT("transformBlocks", NOSPLIT, "func(differences *int16, coefficients *int16) (magnitude int)")
	Doc("transformBlocks makes 24 rows of 16 differences of 24 blocks of 16 coefficients. Sums have 16 bits. It returns the largest magnitude of a coefficient.")
	Pragma("noescape")
	out, in := asm.Pointer("differences"), asm.Pointer("coefficients")
	largest, left := YMM(), GP32()
	VPXOR(largest, largest, largest)
	MOVL(U32(6), left)
	Label("blocks")
	blocks := make([]VecVirtual, 4)
	for i := range blocks {
		blocks[i] = asm.Load(Mem{Base: in, Disp: 32 * i})
		magnitude := YMM()
		VPABSW(blocks[i], magnitude)
		VPMAXUW(magnitude, largest, largest)
	}
	columns := turned(pass(rowsOf(blocks)))
	VPADDW(constant("block4", 4), columns[0], columns[0])
	columns = pass(columns)
	for _, v := range columns {
		VPSRAW(U8(3), v, v)
	}
	for i, v := range turned(columns) {
		VMOVDQU(v, Mem{Base: out, Disp: 32 * i})
	}
	ADDQ(U8(128), in)
	ADDQ(U8(128), out)
	DECL(left)
	JNZ(LabelRef("blocks"))
	Store(maximum(largest), ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// rowsOf makes four vectors, each of a row of four blocks.
func rowsOf(blocks []VecVirtual) []VecVirtual {
	rows := make([]VecVirtual, 4)
	for odd, unpack := range []func(...Op){VPUNPCKLQDQ, VPUNPCKHQDQ} {
		a, b := YMM(), YMM()
		unpack(blocks[1], blocks[0], a)
		unpack(blocks[3], blocks[2], b)
		for half := range 2 {
			rows[2*half+odd] = YMM()
			VPERM2I128(U8(0x20+0x11*half), b, a, rows[2*half+odd])
		}
	}
	return rows
}

// pass transforms four vectors.
func pass(v []VecVirtual) []VecVirtual {
	sum, difference := YMM(), YMM()
	VPADDW(v[2], v[0], sum)
	VPSUBW(v[2], v[0], difference)
	s, t := YMM(), YMM()
	VPSUBW(byCosine(v[3]), bySine(v[1]), s)
	VPADDW(byCosine(v[1]), bySine(v[3]), t)
	out := ymms(4)
	VPADDW(t, sum, out[0])
	VPADDW(s, difference, out[1])
	VPSUBW(s, difference, out[2])
	VPSUBW(t, sum, out[3])
	return out
}

// byCosine and bySine multiply by √2·cos(π/8), which is above 1, and √2·sin(π/8), which as a word is itself less 1.
func byCosine(v VecVirtual) VecVirtual { return times("blockCosine", 20091, v) }
func bySine(v VecVirtual) VecVirtual   { return times("blockSine", 35468-65536, v) }

// times multiplies by 1 more than a fraction of 16 bits.
func times(name string, fraction int, v VecVirtual) VecVirtual {
	w := YMM()
	VPMULHW(constant(name, fraction), v, w)
	VPADDW(v, w, w)
	return w
}

// constants are those that were made.
var constants = map[string]Mem{}

func constant(name string, v int) Mem {
	if _, made := constants[name]; !made {
		constants[name] = asm.Words(name, v)
	}
	return constants[name]
}

// turned makes columns of rows, or rows of columns.
func turned(v []VecVirtual) []VecVirtual {
	type unpack = func(...Op)
	pairs := func(unpack unpack, a, b VecVirtual) VecVirtual {
		w := YMM()
		unpack(b, a, w)
		return w
	}
	out := make([]VecVirtual, 4)
	var fours [2][2]VecVirtual // of even blocks and odd ones, columns 0 and 1, and 2 and 3
	for odd, words := range []unpack{VPUNPCKLWD, VPUNPCKHWD} {
		a, b := pairs(words, v[0], v[1]), pairs(words, v[2], v[3])
		fours[odd] = [2]VecVirtual{pairs(VPUNPCKLDQ, a, b), pairs(VPUNPCKHDQ, a, b)}
	}
	for i := range 2 {
		out[2*i] = pairs(VPUNPCKLQDQ, fours[0][i], fours[1][i])
		out[2*i+1] = pairs(VPUNPCKHQDQ, fours[0][i], fours[1][i])
	}
	return out
}

// maximum is the largest word of a vector.
func maximum(v VecVirtual) Register {
	x, ones, n := XMM(), XMM(), GP64()
	VEXTRACTI128(U8(1), v, x)
	VPMAXUW(v.AsX(), x, x)
	VPCMPEQB(ones, ones, ones)
	VPXOR(ones, x, x)
	VPHMINPOSUW(x, x)
	VPXOR(ones, x, x)
	VMOVD(x, n.As32())
	MOVWLZX(n.As16(), n.As32())
	return n
}
