package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// A look-up in 256 bytes is sixteen shuffles in 16 bytes each. A value loses 16 between two of them until it is negative, from where on shuffles give
// zero. So it has found the parts up to its own, and these are xored: each part is that of the table xored with the one before. Values from 128 on, which
// are negative at first, have the last eight parts to themselves.

// lookups has the constants of look-ups.
type lookups struct{ sixteen, top Mem }

func makeLookups() lookups {
	var sixteen, top [16]byte
	for i := range sixteen {
		sixteen[i], top[i] = 16, 0x80
	}
	return lookups{twice("lookUpSixteen", sixteen), twice("lookUpTop", top)}
}

// find finds, for each of some values, what the table has that begins at its place. load makes them, and is asked twice.
func (l lookups) find(tables []Mem, load func() []VecVirtual) (found []VecVirtual) {
	for half := range 2 {
		values := load()
		if half > 0 {
			for _, x := range values {
				VPXOR(l.top, x, x)
			}
		}
		for k := range 8 {
			part := YMM()
			for i, x := range values {
				if i == 0 || len(tables) > 1 {
					at := tables[i%len(tables)]
					at.Disp += 128*half + 16*k
					VBROADCASTI128(at, part)
				}
				if half == 0 && k == 0 {
					found = append(found, YMM())
					VPSHUFB(x, part, found[i])
				} else {
					t := YMM()
					VPSHUFB(x, part, t)
					VPXOR(t, found[i], found[i])
				}
				if k < 7 {
					VPSUBSB(l.sixteen, x, x)
				}
			}
		}
	}
	return found
}

func lookUpBytes(l lookups) {
	TEXT("lookUpBytes", NOSPLIT, "func(p *byte, parts *[256]byte, n int)")
	Doc("lookUpBytes replaces n bytes, 32 at a time, by those of a table, of which the parts were made; n is a multiple of 32.")
	Pragma("noescape")
	p, parts, n := asm.Pointer("p"), asm.Pointer("parts"), asm.Pointer("n")
	group := func(name string, registers int) {
		SUBQ(I32(int32(32*registers)), n)
		JL(LabelRef(name + "Left"))
		Label(name)
		found := l.find([]Mem{{Base: parts}}, func() (values []VecVirtual) {
			for i := range registers {
				values = append(values, YMM())
				VMOVDQU(Mem{Base: p, Disp: 32 * i}, values[i])
			}
			return values
		})
		for i, v := range found {
			VMOVDQU(v, Mem{Base: p, Disp: 32 * i})
		}
		ADDQ(I32(int32(32*registers)), p)
		SUBQ(I32(int32(32*registers)), n)
		JGE(LabelRef(name))
		Label(name + "Left")
		ADDQ(I32(int32(32*registers)), n)
	}
	group("four", 4)
	group("one", 1)
	VZEROUPPER()
	RET()
}

// plane is a shuffle between 16 bytes of interleaved pixels and 16 of one channel: byte j is that of place at(j), if 0 ≤ at(j) < 16.
func plane(name string, at func(j int) int) Mem {
	var b [16]byte
	for j := range b {
		b[j] = noByte
		if k := at(j); k >= 0 && k < 16 {
			b[j] = byte(k)
		}
	}
	return twice(name, b)
}

// planes shuffle 16 pixels: split[o][c] takes channel c out of the o-th 16 bytes, merge[o][c] puts it there.
type planes struct{ split, merge [3][3]Mem }

func makePlanes() (m planes) {
	for o := range 3 {
		for c := range 3 {
			name := string(rune('0'+o)) + "RGB"[c:c+1]
			m.split[o][c] = plane("split"+name, func(j int) int { return 3*j + c - 16*o })
			m.merge[o][c] = plane("merge"+name, func(j int) int {
				if at := 16*o + j; at%3 == c {
					return at / 3
				}
				return -1
			})
		}
	}
	return m
}

// shuffleAll ors what three registers give to each of three others.
func shuffleAll(in []VecVirtual, mask func(from, to int) Mem) []VecVirtual {
	out := make([]VecVirtual, 3)
	for to := range out {
		out[to] = YMM()
		VPSHUFB(mask(0, to), in[0], out[to])
		for from := 1; from < 3; from++ {
			t := YMM()
			VPSHUFB(mask(from, to), in[from], t)
			VPOR(t, out[to], out[to])
		}
	}
	return out
}

// lookUpPixels has 16 pixels in the lower halves of registers, and the next 16 in the upper ones.
func lookUpPixels(l lookups, m planes) {
	TEXT("lookUpPixels", NOSPLIT, "func(p *byte, parts *[3][256]byte, n int)")
	Doc("lookUpPixels replaces the values of n pixels, 32 at a time, by those of a table for each channel, of which the parts were made; n is a multiple of 32.")
	Pragma("noescape")
	p, parts, n := asm.Pointer("p"), asm.Pointer("parts"), asm.Pointer("n")
	Label("group")
	found := l.find([]Mem{{Base: parts}, {Base: parts, Disp: 256}, {Base: parts, Disp: 512}}, func() []VecVirtual {
		in := make([]VecVirtual, 3)
		for o := range in {
			in[o] = YMM()
			VMOVDQU(Mem{Base: p, Disp: 16 * o}, in[o].AsX())
			VINSERTI128(U8(1), Mem{Base: p, Disp: 48 + 16*o}, in[o], in[o])
		}
		return shuffleAll(in, func(from, to int) Mem { return m.split[from][to] })
	})
	for o, v := range shuffleAll(found, func(from, to int) Mem { return m.merge[to][from] }) {
		VMOVDQU(v.AsX(), Mem{Base: p, Disp: 16 * o})
		VEXTRACTI128(U8(1), v, Mem{Base: p, Disp: 48 + 16*o})
	}
	ADDQ(U8(96), p)
	SUBQ(U8(32), n)
	JG(LabelRef("group"))
	VZEROUPPER()
	RET()
}
