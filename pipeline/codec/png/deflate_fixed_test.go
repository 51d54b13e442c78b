package png

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// packer packs bits as deflated data has them, the lowest of a byte first.
type packer struct {
	data []byte
	bits int
}

func (p *packer) put(v, n int) {
	for i := range n {
		if p.bits%8 == 0 {
			p.data = append(p.data, 0)
		}
		p.data[p.bits/8] |= byte(v >> i & 1 << (p.bits % 8))
		p.bits++
	}
}

// putCode puts a code, whose highest bit comes first.
func (p *packer) putCode(v, n int) {
	for i := n - 1; i >= 0; i-- {
		p.put(v>>i&1, 1)
	}
}

// putFixed puts a block of literals below 144 by the fixed codes.
func (p *packer) putFixed(literals []byte, last int) {
	p.put(last, 1)
	p.put(1, 2)
	for _, v := range literals {
		p.putCode(0x30+int(v), 8)
	}
	p.putCode(0, 7)
}

// putDynamic puts a block of bytes 0 and 1 by codes of its own: 0 has one bit, 1 and the end of the block have two.
func (p *packer) putDynamic(literals []byte, last int) {
	p.put(last, 1)
	p.put(2, 2)
	p.put(0, 5) // 257 lengths
	p.put(0, 5) // and one of distances
	p.put(14, 4)
	for _, symbol := range order[:18] { // the code of lengths: 1, 2 and 18, and one of distances of length 1
		n := map[byte]int{1: 1, 2: 2, 18: 2}[symbol]
		p.put(n, 3)
	}
	p.putCode(0, 1) // of 0: 1 bit
	p.putCode(2, 2) // of 1: 2 bits
	for _, n := range []int{138, 116} {
		p.putCode(3, 2)
		p.put(n-11, 7)
	}
	p.putCode(2, 2) // of the end: 2 bits
	p.putCode(0, 1) // of a distance
	for _, v := range literals {
		p.putCode(2*int(v), 1+int(v))
	}
	p.putCode(3, 2)
}

// putBroken puts the head of a block whose codes are not complete.
func (p *packer) putBroken() {
	p.put(0, 1)
	p.put(2, 2)
	p.put(0, 14)
	p.put(0, 12)
	p.put(0, 64)
}

// Blocks with fixed codes, and with codes of their own between them, decompress whichever came before, in this data or in that before it.
func TestFixedCodesAmongOthers(t *testing.T) {
	for _, d := range decompressors() {
		testFixedCodesAmongOthers(t, d)
	}
}

func testFixedCodesAmongOthers(t *testing.T, d *decompressor) {
	r := rand.New(rand.NewPCG(3, 9))
	for turn := range 60 {
		var p packer
		var want []byte
		blocks := 1 + r.IntN(12)
		for i := range blocks {
			literals := make([]byte, r.IntN(40))
			last := 0
			if i == blocks-1 {
				last = 1
			}
			if r.IntN(3) > 0 {
				for k := range literals {
					literals[k] = byte(r.IntN(144))
				}
				p.putFixed(literals, last)
			} else {
				for k := range literals {
					literals[k] = byte(r.IntN(2))
				}
				p.putDynamic(literals, last)
			}
			want = append(want, literals...)
		}
		got, ended, _ := decompressAll(d, p.data, len(want)+1)
		if !ended || !bytes.Equal(got, want) {
			t.Fatalf("turn %d, %d blocks: %d of %d bytes, ended %t", turn, blocks, len(got), len(want), ended)
		}
		if turn%3 == 0 {
			var broken packer
			broken.putFixed(nil, 0)
			broken.putBroken()
			if _, ended, _ := decompressAll(d, broken.data, 1); ended {
				t.Fatal("codes that are not complete are taken")
			}
		}
	}
}

// Symbols that have a code and no meaning, and matches from before the data, are in doubt, with little data behind them or much.
func TestSymbolsWithoutMeaning(t *testing.T) {
	for name, put := range map[string]func(p *packer){
		"a length that is none":       func(p *packer) { p.putCode(0xc6, 8) },
		"a distance that is none":     func(p *packer) { p.putCode(1, 7); p.putCode(30, 5) },
		"a match from before a byte":  func(p *packer) { p.putCode(1, 7); p.putCode(1, 5) },
		"a match from before history": func(p *packer) { p.putCode(1, 7); p.putCode(29, 5); p.put(1<<13-1, 13) },
	} {
		for _, behind := range []int{0, 100} {
			var p packer
			p.putFixed([]byte{9}, 0)
			p.put(1, 1)
			p.put(1, 2)
			put(&p)
			p.data = append(p.data, make([]byte, behind)...)
			for _, d := range decompressors() {
				if out, ended, _ := decompressAll(d, p.data, 1000); ended || len(out) > 1 {
					t.Errorf("%s, %d bytes behind it: ended %t, with %x", name, behind, ended, out)
				}
			}
		}
	}
}

// BenchmarkFixedBlocks: small blocks with fixed codes, as of an encoder that flushes often.
func BenchmarkFixedBlocks(b *testing.B) {
	var p packer
	literals := bytes.Repeat([]byte{1, 2, 3, 4}, 64)
	for range 60 {
		p.putFixed(literals, 0)
	}
	p.putFixed(literals, 1)
	d, window := new(decompressor), make([]byte, 61*len(literals)+2*windowSlack)
	b.SetBytes(int64(61 * len(literals)))
	for b.Loop() {
		d.open(p.data)
		if _, ended, err := d.decompress(window, 0, 61*len(literals)+1); !ended || err != nil {
			b.Fatal(ended, err)
		}
	}
}
