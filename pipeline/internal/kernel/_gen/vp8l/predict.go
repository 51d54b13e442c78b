package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// predictor is a mode of prediction. Where serial is set it makes one pixel after the other, out of left, else a group at once, which looks at no pixel of
// its own row.
type predictor struct {
	name   string
	doc    string
	serial bool
	words  bool // left is kept as words
	make   func(p *prediction) VecVirtual
}

// prediction is what a predictor sees.
type prediction struct {
	left, ones VecVirtual
	above      Register
	wide       bool
}

func predictors() []predictor {
	return []predictor{
		{name: "predictAbove", doc: "that at above", make: func(p *prediction) VecVirtual { return p.at(0) }},
		{name: "predictMeanAbove", doc: "the mean of those above at above and at above+1", make: func(p *prediction) VecVirtual { return p.mean(p.at(0), p.at(1)) }},
		{name: "predictLeft", doc: "the left one", serial: true, make: func(p *prediction) VecVirtual { return p.left }},
		{name: "predictMean3", doc: "the mean of above and of the mean of left and right", serial: true, make: func(p *prediction) VecVirtual {
			return p.mean(p.mean(p.left, p.at(2)), p.at(1))
		}},
		{name: "predictMeanLeft", doc: "the mean of left and of that at above", serial: true, make: func(p *prediction) VecVirtual { return p.mean(p.left, p.at(0)) }},
		{name: "predictMean4", doc: "the mean of two means", serial: true, make: func(p *prediction) VecVirtual {
			right := p.mean(p.at(1), p.at(2))
			return p.mean(p.mean(p.left, p.at(0)), right)
		}},
		{name: "predictNearer", doc: "above or left, by distances from the corner", serial: true, make: nearer},
		{name: "predictContinued", doc: "left + above − corner", serial: true, words: true, make: continued},
		{name: "predictContinuedByHalf", doc: "the mean of left and above, and half of its difference from the corner", serial: true, words: true, make: byHalf},
	}
}

// at loads what lies above, so many pixels behind the corner.
func (p *prediction) at(k int) VecVirtual {
	if p.wide {
		v := YMM()
		VMOVDQU(Mem{Base: p.above, Disp: 4 * k}, v)
		return v
	}
	v := XMM()
	VMOVD(Mem{Base: p.above, Disp: 4 * k}, v)
	return v
}

// wordsAt is at, in words.
func (p *prediction) wordsAt(k int) VecVirtual {
	v := XMM()
	VPMOVZXBW(p.at(k), v)
	return v
}

// like returns a register.
func (p *prediction) like() VecVirtual {
	if p.wide {
		return YMM()
	}
	return XMM()
}

// mean is the means of bytes, rounded down.
func (p *prediction) mean(a, b VecVirtual) VecVirtual {
	m, odd := p.like(), p.like()
	VPXOR(a, b, odd)
	VPAVGB(a, b, m)
	VPAND(p.ones, odd, odd)
	VPSUBB(odd, m, m)
	return m
}

// nearer takes above where left is not further from the corner than above is.
func nearer(p *prediction) VecVirtual {
	corner, up := p.at(0), p.at(1)
	a, b, v := XMM(), XMM(), XMM()
	VPSADBW(corner, up, a)
	VPSADBW(corner, p.left, b)
	VPCMPGTD(a, b, b) // only of the lowest 32 bits does it count
	VPBLENDVB(b, p.left, up, v)
	return v
}

func continued(p *prediction) VecVirtual {
	v := p.wordsAt(1)
	VPSUBW(p.wordsAt(0), v, v)
	VPADDW(p.left, v, v)
	VPACKUSWB(v, v, v)
	return v
}

func byHalf(p *prediction) VecVirtual {
	corner, mean, t := p.wordsAt(0), p.wordsAt(1), XMM()
	VPADDW(p.left, mean, mean)
	VPSRLW(U8(1), mean, mean)
	VPSUBW(corner, mean, t)
	VPSRLW(U8(15), t, corner)
	VPADDW(corner, t, t)
	VPSRAW(U8(1), t, t)
	VPADDW(t, mean, mean)
	VPACKUSWB(mean, mean, mean)
	return mean
}

// write writes a predictor: groups of 8 where it may, then single pixels.
func (d predictor) write() {
	TEXT(d.name, NOSPLIT, "func(pix, above *uint32, n int)")
	Doc(d.name + " adds to n ≥ 1 pixels " + d.doc + ". Above begins with the corner; left of pix there is one that is done.")
	Pragma("noescape")
	p := &prediction{}
	pix, n := asm.Pointer("pix"), asm.Pointer("n")
	p.above = asm.Pointer("above")
	ones := YMM()
	p.ones = ones
	one := GP32()
	MOVL(U32(0x01010101), one)
	VMOVD(one, ones.AsX())
	VPBROADCASTD(ones.AsX(), ones)
	if !d.serial {
		p.wide = true
		Label("group")
		CMPQ(n, U8(8))
		JL(LabelRef("rest"))
		v := d.make(p)
		VPADDB(Mem{Base: pix}, v, v)
		VMOVDQU(v, Mem{Base: pix})
		p.next(pix, n, 8)
		JMP(LabelRef("group"))
		Label("rest")
		TESTQ(n, n)
		JE(LabelRef("done"))
		p.wide, p.ones = false, XMM()
		VMOVDQA(ones.AsX(), p.ones)
	} else {
		p.ones = XMM()
		VMOVDQA(ones.AsX(), p.ones)
		p.left = XMM()
		VMOVD(Mem{Base: pix, Disp: -4}, p.left)
		if d.words {
			VPMOVZXBW(p.left, p.left)
		}
	}
	Label("pixel")
	v, raw := d.make(p), XMM()
	VMOVD(Mem{Base: pix}, raw)
	sum := XMM()
	if d.serial && !d.words {
		sum = p.left
	}
	VPADDB(raw, v, sum)
	VMOVD(sum, Mem{Base: pix})
	if d.words {
		VPMOVZXBW(sum, p.left)
	}
	p.next(pix, n, 1)
	JG(LabelRef("pixel"))
	Label("done")
	VZEROUPPER()
	RET()
}

// next moves on.
func (p *prediction) next(pix, n GPVirtual, by int) {
	ADDQ(U8(4*by), pix)
	ADDQ(U8(4*by), p.above)
	SUBQ(U8(by), n)
}
