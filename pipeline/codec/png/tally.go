package png

import (
	"encoding/binary"
)

// tally counts what deflated data becomes, symbol by symbol, to the last bit: zlib gives out what whole symbols stand for, and looks at no bit
// behind them. It keeps no output, and does not look for damage, which is found where the rows are decompressed.
type tally struct {
	data []byte
	at   int // bits that were read
	out  int
	most int // where counting may end

	lengths   [320]byte
	literals  canonical
	distances canonical
	over      bool // the data has ended, or is none from here on
}

// becomes is how many bytes zlib gives out for the whole symbols of deflated data, most or a little more where there are as many.
func becomes(data []byte, most int) int {
	t := tally{data: data, most: most}
	for last := false; !last && t.out < t.most; {
		last = t.take(1) == 1
		kind := t.take(2)
		if t.over {
			break
		}
		switch kind {
		case 0:
			t.stored()
		case 1:
			t.fixed()
			t.symbols()
		case 2:
			if t.dynamic() {
				t.symbols()
			}
		}
		if t.over || kind == 3 {
			break
		}
	}
	return t.out
}

// take reads n bits, at most 16; 0 where there are not as many.
func (t *tally) take(n int) int {
	if t.at+n > 8*len(t.data) {
		t.over = true
		return 0
	}
	v := 0
	for i := range n {
		v |= int(t.data[t.at>>3]>>(t.at&7)&1) << i
		t.at++
	}
	return v
}

// stored copies bytes as far as they are there.
func (t *tally) stored() {
	at := (t.at + 7) / 8
	if at+4 > len(t.data) {
		t.over = true
		return
	}
	n := int(binary.LittleEndian.Uint16(t.data[at:]))
	if n^0xffff != int(binary.LittleEndian.Uint16(t.data[at+2:])) {
		t.over = true // no block, and so nothing behind it
		return
	}
	at += 4
	n = min(n, len(t.data)-at)
	t.out += n
	t.at = 8 * (at + n)
}

func (t *tally) fixed() {
	t.literals.set(fixedLengths[:fixedLiterals])
	t.distances.set(fixedLengths[fixedLiterals:][:30])
}

var order = [19]byte{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamic reads the codes of a block, and reports whether they are there.
func (t *tally) dynamic() bool {
	literals, distances, n := 257+t.take(5), 1+t.take(5), 4+t.take(4)
	t.lengths = [320]byte{}
	for i := range n {
		t.lengths[order[i]] = byte(t.take(3))
	}
	t.literals.set(t.lengths[:19])
	t.lengths = [320]byte{}
	for at := 0; at < literals+distances; {
		symbol, repeats := t.symbol(&t.literals), 1
		length := byte(symbol)
		switch symbol {
		case 16:
			if repeats = 3 + t.take(2); at > 0 {
				length = t.lengths[at-1]
			}
		case 17:
			repeats, length = 3+t.take(3), 0
		case 18:
			repeats, length = 11+t.take(7), 0
		}
		if t.over || length > 15 || at+repeats > literals+distances {
			t.over = true
			return false
		}
		for range repeats {
			t.lengths[at] = length
			at++
		}
	}
	t.literals.set(t.lengths[:literals])
	t.distances.set(t.lengths[literals : literals+distances])
	return true
}

// symbol reads a symbol.
func (t *tally) symbol(c *canonical) int {
	value, first, index := 0, 0, 0
	for n := 1; n <= 15; n++ {
		value |= t.take(1)
		if t.over {
			return 0
		}
		if value-c.count[n] < first {
			return int(c.symbol[index+value-first])
		}
		index += c.count[n]
		first = (first + c.count[n]) << 1
		value <<= 1
	}
	t.over = true // no code, and so nothing behind it
	return 0
}

// symbols counts what a block's symbols become.
func (t *tally) symbols() {
	const end = 256
	for t.out < t.most {
		s := t.symbol(&t.literals)
		switch {
		case t.over || s == end:
			return
		case s < end:
			t.out++
			continue
		}
		if s > end+29 {
			t.over = true // no code, and so nothing behind it
			return
		}
		n := t.length(s - end - 1)
		if d := t.symbol(&t.distances); d > 3 {
			t.take(d/2 - 1)
		}
		if t.over {
			return
		}
		t.out += n
	}
}

// length is how many bytes length code s stands for, of which some have further bits.
func (t *tally) length(s int) int {
	switch {
	case s < 8:
		return 3 + s
	case s >= 28:
		return 258
	}
	further := s/4 - 1
	return 3 + (4+s%4)<<further + t.take(further)
}
