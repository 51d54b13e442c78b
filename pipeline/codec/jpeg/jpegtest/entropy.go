package jpegtest

import "math/bits"

// table is one of the four Huffman tables: DC and AC of the first component, DC and AC of the others, as class<<1 | number.
type table int

const noTable table = -1

// walk visits the symbols of a scan in order, each with the n bits v that follow it.
func (e *encoder) walk(comps []int, symbol func(t table, symbol byte, v uint32, n int), restart func()) {
	var last [4]int16
	unit := func(i int, b *[64]int16) {
		number := table(min(i, 1))
		n, v := magnitude(int(b[0]) - int(last[i]))
		last[i] = b[0]
		symbol(number, byte(n), v, n)
		walkAC(b, func(s byte, v uint32, n int) { symbol(2|number, s, v, n) })
	}
	e.units(comps, unit, func() {
		restart()
		last = [4]int16{}
	})
}

// units visits the blocks of a scan in order.
func (e *encoder) units(comps []int, unit func(comp int, b *[64]int16), restart func()) {
	mcu := 0
	next := func() {
		if e.Restart > 0 && mcu > 0 && mcu%e.Restart == 0 {
			restart()
		}
		mcu++
	}
	if len(comps) == 1 {
		c := &e.comps[comps[0]]
		for y := range c.blocksY {
			for x := range c.blocksX {
				next()
				unit(comps[0], &c.blocks[y*c.stride+x])
			}
		}
		return
	}
	for y := range e.mcusY {
		for x := range e.mcusX {
			next()
			for _, i := range comps {
				c := &e.comps[i]
				for b := range c.h * c.v {
					unit(i, &c.blocks[(y*c.v+b/c.h)*c.stride+x*c.h+b%c.h])
				}
			}
		}
	}
}

// walkAC visits the symbols of a block behind its first coefficient.
func walkAC(b *[64]int16, symbol func(s byte, v uint32, n int)) {
	run := 0
	for _, c := range b[1:] {
		if c == 0 {
			run++
			continue
		}
		for ; run > 15; run -= 16 {
			symbol(0xf0, 0, 0)
		}
		n, v := magnitude(int(c))
		symbol(byte(run<<4|n), v, n)
		run = 0
	}
	if run > 0 {
		symbol(0, 0, 0)
	}
}

// magnitude is the length of a coefficient's value and its bits.
func magnitude(c int) (n int, v uint32) {
	n = bits.Len(uint(abs(c)))
	if c < 0 {
		c += 1<<n - 1
	}
	return n, uint32(c)
}

// bitWriter appends bits and stuffs zeros.
type bitWriter struct {
	out []byte
	acc uint64
	n   int
}

func (w *bitWriter) put(v uint32, n int) {
	w.acc = w.acc<<n | uint64(v)
	for w.n += n; w.n >= 8; w.n -= 8 {
		b := byte(w.acc >> (w.n - 8))
		w.out = append(w.out, b)
		if b == 0xff {
			w.out = append(w.out, 0)
		}
	}
}

// flush fills up the last byte with ones.
func (w *bitWriter) flush() {
	if w.n > 0 {
		w.put(1<<(8-w.n)-1, 8-w.n)
	}
	w.acc, w.n = 0, 0
}
