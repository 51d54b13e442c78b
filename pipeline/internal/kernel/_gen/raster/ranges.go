package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// findRanges: 96 bytes begin with the same channel as the 96 before.
func findRanges() {
	TEXT("findRanges", NOSPLIT, "func(low, high *[96]byte, p *byte, n int)")
	Doc("findRanges makes low the least and high the greatest of itself and of those of n bytes that lie at the same place in their 96; n is a multiple of 96.")
	Pragma("noescape")
	low, high, p, n := asm.Pointer("low"), asm.Pointer("high"), asm.Pointer("p"), asm.Pointer("n")
	var least, most [3]VecVirtual
	for i := range least {
		least[i], most[i] = asm.Load(Mem{Base: low, Disp: 32 * i}), asm.Load(Mem{Base: high, Disp: 32 * i})
	}
	Label("group")
	for i := range least {
		x := asm.Load(Mem{Base: p, Disp: 32 * i})
		VPMINUB(x, least[i], least[i])
		VPMAXUB(x, most[i], most[i])
	}
	ADDQ(U8(96), p)
	SUBQ(U8(96), n)
	JG(LabelRef("group"))
	for i := range least {
		asm.Move(least[i], Mem{Base: low, Disp: 32 * i})
		asm.Move(most[i], Mem{Base: high, Disp: 32 * i})
	}
	VZEROUPPER()
	RET()
}
