// Command resize writes resize_amd64.s, the AVX2 kernels of the two resampling passes.
//
// Both multiply 8-bit samples by 22-bit weights exactly, by cutting every weight in two parts and summing the products
// of a pair of taps for each part.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const weightBits = 22

func main() {
	ConstraintExpr("!purego")
	vertical()
	horizontal()
	Generate()
}

// vectors returns n fresh 256-bit registers.
func vectors(n int) []VecVirtual {
	v := make([]VecVirtual, n)
	for i := range v {
		v[i] = YMM()
	}
	return v
}

// broadcast returns a register with x in every dword.
func broadcast(x uint32) VecVirtual {
	r, low, v := GP32(), XMM(), YMM()
	MOVL(U32(x), r)
	VMOVD(r, low)
	VPBROADCASTD(low, v)
	return v
}

// constant lays 16 bytes down twice, once per 128-bit lane. -1 gives a zero in a shuffle.
func constant(name string, lane [16]int8) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 32 {
		DATA(i, I8(lane[i%16]))
	}
	return m
}
