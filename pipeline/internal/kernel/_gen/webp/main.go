// Command webp writes the AVX2 assembly of package vp8: bits and copies read, edges filtered, blocks predicted and transformed, colors. Run it through `go generate` in package vp8.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("!purego")
	e := makeEdges()
	e.across()
	e.down()
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

// xmms returns n registers.
func xmms(n int) (v []VecVirtual) {
	for range n {
		v = append(v, XMM())
	}
	return v
}
