// Package asm makes what kernels of several packages take: parameters and constants.
package asm

import (
	"math"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const attributes = 24 // RODATA | NOPTR

// Lanes is how many lanes of 16 bytes the vectors have that are made: 2 of AVX2, 4 of AVX-512.
var Lanes = 2

// Vector returns a register of so many lanes.
func Vector() reg.VecVirtual {
	if Lanes == 4 {
		return build.ZMM()
	}
	return build.YMM()
}

// Zero makes a register zero.
func Zero(v reg.VecVirtual) {
	if Lanes == 4 {
		build.VPXORQ(v, v, v)
	} else {
		build.VPXOR(v, v, v)
	}
}

// And makes to of the bits that a and b have both.
func And(a operand.Op, b, to reg.VecVirtual) {
	if Lanes == 4 {
		build.VPANDQ(a, b, to)
	} else {
		build.VPAND(a, b, to)
	}
}

// Or makes to of the bits that a or b has.
func Or(a operand.Op, b, to reg.VecVirtual) {
	if Lanes == 4 {
		build.VPORQ(a, b, to)
	} else {
		build.VPOR(a, b, to)
	}
}

// Move loads or stores a vector.
func Move(from, to operand.Op) {
	if Lanes == 4 {
		build.VMOVDQU64(from, to)
	} else {
		build.VMOVDQU(from, to)
	}
}

// Load loads a vector into a register of its own.
func Load(from operand.Op) reg.VecVirtual {
	v := Vector()
	Move(from, v)
	return v
}

// NextGroup goes to label group with i that much further on, or at last, so that the last group overlaps the one before. Behind it is label done.
func NextGroup(i, last reg.Register, size uint64) {
	build.CMPQ(i, last)
	build.JE(operand.LabelRef("done"))
	build.ADDQ(operand.Imm(size), i)
	build.CMPQ(i, last)
	build.CMOVQGT(last, i)
	build.JMP(operand.LabelRef("group"))
	build.Label("done")
}

// AddProducts appends VPDPWSSD, which avo does not know: it adds to each dword of sum the two products of its words in a and b.
func AddProducts(b, a operand.Op, sum reg.VecVirtual) {
	build.Instruction(&ir.Instruction{
		Opcode: "VPDPWSSD", ISA: []string{"AVX512_VNNI"},
		Operands: []operand.Op{b, a, sum}, Inputs: []operand.Op{b, a, sum}, Outputs: []operand.Op{sum},
	})
}

// Pointer loads a parameter.
func Pointer(name string) reg.GPVirtual {
	return build.Load(build.Param(name), build.GP64()).(reg.GPVirtual)
}

// Param is a parameter's place in memory.
func Param(name string) operand.Mem {
	place, err := build.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return place.Addr
}

// Bytes makes a constant that holds the 16 bytes b in each lane.
func Bytes(name string, b [16]int) operand.Mem {
	m := build.GLOBL(name, attributes)
	for i := range 16 * Lanes {
		build.DATA(i, operand.U8(b[i%16]))
	}
	return m
}

// Words makes a constant of a vector's length that repeats the words w.
func Words(name string, w ...int) operand.Mem {
	m := build.GLOBL(name, attributes)
	for i := range 8 * Lanes {
		build.DATA(2*i, operand.U16(uint16(int16(w[i%len(w)]))))
	}
	return m
}

// Dwords makes a constant of a vector's length that repeats v.
func Dwords(name string, v int) operand.Mem {
	m := build.GLOBL(name, attributes)
	for i := range 4 * Lanes {
		build.DATA(4*i, operand.U32(uint32(int32(v))))
	}
	return m
}

// Doubles makes a constant of a vector's length that repeats v.
func Doubles(name string, v float64) operand.Mem {
	m := build.GLOBL(name, attributes)
	for i := range 2 * Lanes {
		build.DATA(8*i, operand.U64(math.Float64bits(v)))
	}
	return m
}

// Lane makes a constant of 16 bytes that holds the dwords v.
func Lane(name string, v ...int) operand.Mem {
	m := build.GLOBL(name, attributes)
	for i, x := range v {
		build.DATA(4*i, operand.U32(uint32(int32(x))))
	}
	return m
}

// All makes a constant of 64 bytes that differ.
func All(name string, b [64]byte) operand.Mem {
	m := build.GLOBL(name, attributes)
	for i, v := range b {
		build.DATA(i, operand.U8(v))
	}
	return m
}
