// Command jpeg writes the AVX2 assembly of package kernel's JPEG kernels. Run it through `go generate` in package
// kernel.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("!purego")
	idct()
	color()
	grey()
	h2v1()
	h2v2()
	h1v2()
	unstuff()
	Generate()
}

// last moves the position i back so that a group of 32 ends at n, unless it has just done that. It jumps to again for
// one more group, else falls through. Kernels that call it have handled i at least once and need n >= 32: the last
// group overlaps the one before it, so that nothing outside the row is read or written.
func last(i, n reg.GPVirtual, again string) {
	ADDQ(U8(32), i)
	rest := GP64()
	LEAQ(Mem{Base: i, Disp: 32}, rest)
	CMPQ(rest, n)
	JLE(LabelRef(again))
	CMPQ(i, n)
	JGE(LabelRef("done"))
	LEAQ(Mem{Base: n, Disp: -32}, i)
	JMP(LabelRef(again))
}
