//go:build amd64 && !purego

#include "textflag.h"

// func streamLines(dst, src *byte, lines int)
TEXT ·streamLines(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ lines+16(FP), CX

line:
	MOVOU  0(SI), X0
	MOVOU  16(SI), X1
	MOVOU  32(SI), X2
	MOVOU  48(SI), X3
	MOVNTO X0, 0(DI)
	MOVNTO X1, 16(DI)
	MOVNTO X2, 32(DI)
	MOVNTO X3, 48(DI)
	ADDQ   $64, SI
	ADDQ   $64, DI
	DECQ   CX
	JNZ    line
	RET

// x^(2048+32) and x^(2048-32) modulo the polynomial of CRC-32C, bits reversed and shifted by one: what carries 16 bytes on by 256.
DATA carry<>+0(SB)/8, $0xdcb17aa4
DATA carry<>+8(SB)/8, $0xb9e02b86
GLOBL carry<>(SB), RODATA|NOPTR, $16

#define FOLD(acc, data) \
	VPCLMULQDQ $0x00, Z4, acc, Z5 \
	VPCLMULQDQ $0x11, Z4, acc, acc \
	VPTERNLOGQ $0x96, Z5, data, acc

// func streamFold(dst, src *byte, blocks int, state uint32, rest *[256]byte)
//
// Folding as in Gopal et al., "Fast CRC computation for generic polynomials using PCLMULQDQ", in 16 lanes.
TEXT ·streamFold(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ blocks+16(FP), CX
	MOVL state+24(FP), AX
	MOVQ rest+32(FP), DX

	VBROADCASTI32X4 carry<>(SB), Z4
	VMOVDQU64       0(SI), Z0
	VMOVDQU64       64(SI), Z1
	VMOVDQU64       128(SI), Z2
	VMOVDQU64       192(SI), Z3
	VMOVNTDQ        Z0, 0(DI)
	VMOVNTDQ        Z1, 64(DI)
	VMOVNTDQ        Z2, 128(DI)
	VMOVNTDQ        Z3, 192(DI)
	VMOVD           AX, X5
	VPXORQ          Z5, Z0, Z0
	JMP             next

block:
	VMOVDQU64 0(SI), Z6
	VMOVDQU64 64(SI), Z7
	VMOVDQU64 128(SI), Z8
	VMOVDQU64 192(SI), Z9
	VMOVNTDQ  Z6, 0(DI)
	VMOVNTDQ  Z7, 64(DI)
	VMOVNTDQ  Z8, 128(DI)
	VMOVNTDQ  Z9, 192(DI)
	FOLD(Z0, Z6)
	FOLD(Z1, Z7)
	FOLD(Z2, Z8)
	FOLD(Z3, Z9)

next:
	ADDQ $256, SI
	ADDQ $256, DI
	DECQ CX
	JNZ  block

	VMOVDQU64 Z0, 0(DX)
	VMOVDQU64 Z1, 64(DX)
	VMOVDQU64 Z2, 128(DX)
	VMOVDQU64 Z3, 192(DX)
	VZEROUPPER
	RET

// func Fence()
TEXT ·Fence(SB), NOSPLIT, $0-0
	SFENCE
	RET
