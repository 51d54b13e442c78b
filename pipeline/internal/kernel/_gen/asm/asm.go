// Package asm makes what kernels of several packages take: parameters and constants.
package asm

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const attributes = 24 // RODATA | NOPTR

// Pointer loads a parameter.
func Pointer(name string) reg.GPVirtual {
	return build.Load(build.Param(name), build.GP64()).(reg.GPVirtual)
}

// Bytes makes a constant of 32 bytes that holds the 16 bytes b in both lanes.
func Bytes(name string, b [16]int) operand.Mem {
	m := build.GLOBL(name, attributes)
	for i := range 32 {
		build.DATA(i, operand.U8(b[i%16]))
	}
	return m
}

// Words makes a constant of 32 bytes that repeats the words w.
func Words(name string, w ...int) operand.Mem {
	m := build.GLOBL(name, attributes)
	for i := range 16 {
		build.DATA(2*i, operand.U16(uint16(int16(w[i%len(w)]))))
	}
	return m
}

// Dwords makes a constant of 32 bytes that repeats v.
func Dwords(name string, v int) operand.Mem {
	m := build.GLOBL(name, attributes)
	for i := range 8 {
		build.DATA(4*i, operand.U32(uint32(int32(v))))
	}
	return m
}
