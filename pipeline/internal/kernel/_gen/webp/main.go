// Command webp writes the AVX2 assembly of package vp8: edges filtered, blocks transformed, colors. Run it through `go generate` in package vp8.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("!purego")
	edge()
	turn()
	turnBack()
	transform()
	upsample()
	color()
	Generate()
}

// pointer loads a parameter.
func pointer(name string) GPVirtual { return Load(Param(name), GP64()).(GPVirtual) }

// words makes a constant of 32 bytes that repeats a word.
func words(name string, v int) Mem {
	m := GLOBL(name, 24) // RODATA | NOPTR
	for i := range 16 {
		DATA(2*i, U16(uint16(int16(v))))
	}
	return m
}

// bytes makes a constant of 16 bytes that repeats a byte.
func bytes(name string, v int) Mem {
	m := GLOBL(name, 24)
	for i := range 16 {
		DATA(i, U8(v))
	}
	return m
}

// bytes32 makes a constant of 32 bytes that holds the 16 bytes b in both lanes.
func bytes32(name string, b [16]int) Mem {
	m := GLOBL(name, 24)
	for i := range 32 {
		DATA(i, U8(b[i%16]))
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
	VMOVD(pointer(name).As32(), v)
	VPBROADCASTB(v, v)
	return v
}
