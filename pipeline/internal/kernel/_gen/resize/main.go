// Command resize writes the kernels of the two resampling passes: those of AVX2, among which are those that make and lay
// out the weights, or with -avx512 those of AVX-512.
//
// Both passes multiply 8-bit samples by 22-bit weights exactly, by cutting every weight in two parts and summing the products
// of a pair of taps for each part.
package main

import (
	"flag"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

const (
	weightBits = 22
	lowBits    = 11 // horizontal cuts a weight here
)

func main() {
	wide := flag.Bool("avx512", false, "write kernels of AVX-512")
	flag.Parse()
	ConstraintExpr("!purego")
	if *wide {
		asm.Lanes = 4
		vertical()
		mix()
		horizontalWide()
	} else {
		vertical()
		mix()
		horizontal()
		triangle()
		packVertical()
		groupTaps()
	}
	Generate()
}

// vectors returns n fresh registers.
func vectors(n int) []VecVirtual {
	v := make([]VecVirtual, n)
	for i := range v {
		v[i] = asm.Vector()
	}
	return v
}

// broadcast returns a register with x in every dword.
func broadcast(x uint32) VecVirtual {
	r, low, v := GP32(), XMM(), asm.Vector()
	MOVL(U32(x), r)
	VMOVD(r, low)
	VPBROADCASTD(low, v)
	return v
}
