// Command webp writes the AVX2 assembly of package vp8: bits and copies read, edges filtered, blocks predicted and transformed, colors. Run it through `go generate` in package vp8.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

func main() {
	ConstraintExpr("!purego")
	edge()
	turn()
	turnBack()
	transform()
	blocks()
	luma()
	chroma()
	upsample()
	color()
	arithmetic()
	copied()
	Generate()
}

// bytes makes a constant of 16 bytes that repeats a byte.
func bytes(name string, v int) Mem {
	m := GLOBL(name, 24)
	for i := range 16 {
		DATA(i, U8(v))
	}
	return m
}

// xmms returns n registers.
func xmms(n int) (v []VecVirtual) {
	for range n {
		v = append(v, XMM())
	}
	return v
}

// broadcast makes a vector of a parameter's lowest byte.
func broadcast(name string) VecVirtual {
	v := XMM()
	VMOVD(asm.Pointer(name).As32(), v)
	VPBROADCASTB(v, v)
	return v
}
