// Command jpeg writes the assembly of package kernel's JPEG kernels: that of AVX2, or with -avx512 those that gain by
// longer vectors. Run it through `go generate` in package kernel.
package main

import (
	"flag"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

func main() {
	wide := flag.Bool("avx512", false, "write kernels of AVX-512")
	flag.Parse()
	ConstraintExpr("!purego")
	if *wide {
		asm.Lanes = 4
		idct()
		color()
		Generate()
		return
	}
	idct()
	color()
	grey()
	h2v1()
	h2v2()
	h1v2()
	unstuff()
	Generate()
}

// last moves the position i back so that a group of 32 bytes, of AVX-512 64, ends at n, unless it has just done that. It
// jumps to again for one more group, else falls through. Kernels that call it have handled i at least once and need n >= 32,
// or 64: the last group overlaps the one before it, so that nothing outside the row is read or written.
func last(i, n reg.GPVirtual, again string) {
	group := 16 * asm.Lanes
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
