package bmp

import "encoding/binary"

// layout is how a row is stored.
type layout struct {
	bits    int
	palette [256][3]byte // up to 8 bits
	shifts  [3]int       // of red, green, blue in 32 bits
	greens  int          // the largest green in 16 bits
}

// mask chooses the layout by the masks of red, green, blue and transparency. It returns false if they are none of the usual.
func (l *layout) mask(m [4]uint32) bool {
	switch l.bits {
	case 32:
		for _, k := range [...]struct {
			masks  [4]uint32
			shifts [3]int
		}{
			{[4]uint32{0xff0000, 0xff00, 0xff, 0}, [3]int{16, 8, 0}},
			{[4]uint32{0xff000000, 0xff0000, 0xff00, 0}, [3]int{24, 16, 8}},
			{[4]uint32{0xff000000, 0xff00, 0xff, 0}, [3]int{24, 8, 0}},
			{[4]uint32{0xff000000, 0xff0000, 0xff00, 0xff}, [3]int{24, 16, 8}},
			{[4]uint32{0xff, 0xff00, 0xff0000, 0xff000000}, [3]int{0, 8, 16}},
			{[4]uint32{0xff0000, 0xff00, 0xff, 0xff000000}, [3]int{16, 8, 0}},
			{[4]uint32{0xff000000, 0xff00, 0xff, 0xff0000}, [3]int{24, 8, 0}},
			{[4]uint32{}, [3]int{16, 8, 0}},
		} {
			if k.masks == m {
				l.shifts = k.shifts
				return true
			}
		}
	case 24:
		return [3]uint32(m[:3]) == [3]uint32{0xff0000, 0xff00, 0xff}
	case 16:
		switch [3]uint32(m[:3]) {
		case [3]uint32{0xf800, 0x7e0, 0x1f}:
			l.greens = 63
			return true
		case [3]uint32{0x7c00, 0x3e0, 0x1f}:
			return true
		}
	}
	return false
}

// greys makes the palette one of greys.
func (l *layout) greys(colors int) {
	l.bits = 8
	for i := range l.palette {
		l.palette[i] = [3]byte{byte(i), byte(i), byte(i)}
	}
	if colors <= 2 {
		l.bits = 1
		for i := range l.palette {
			l.palette[i] = [3]byte{255, 255, 255}
		}
		l.palette[0] = [3]byte{}
	}
}

// expand makes RGB of the pixels of a row from x on, as many as dst has room for.
func (l *layout) expand(dst, row []byte, x int) {
	n := len(dst) / 3
	switch l.bits {
	case 16:
		l.expand16(dst, row[2*x:])
	case 24:
		for i := range n {
			s, d := row[3*(x+i):][:3], dst[3*i:][:3]
			d[0], d[1], d[2] = s[2], s[1], s[0]
		}
	case 32:
		for i := range n {
			v, d := binary.LittleEndian.Uint32(row[4*(x+i):]), dst[3*i:][:3]
			d[0], d[1], d[2] = byte(v>>(l.shifts[0]&31)), byte(v>>(l.shifts[1]&31)), byte(v>>(l.shifts[2]&31))
		}
	default:
		most := 1<<l.bits - 1
		for i := range n {
			bit := (x + i) * l.bits
			*(*[3]byte)(dst[3*i:]) = l.palette[int(row[bit/8])>>(8-l.bits-bit%8)&most]
		}
	}
}

// expand16 scales 5 or 6 bits to 8, rounded down.
func (l *layout) expand16(dst, row []byte) {
	red := 10
	if l.greens == 63 {
		red = 11
	}
	for i := range len(dst) / 3 {
		v, d := int(binary.LittleEndian.Uint16(row[2*i:])), dst[3*i:][:3]
		d[0], d[1], d[2] = byte((v>>red&31)*255/31), byte((v>>5&l.greens)*255/l.greens), byte((v&31)*255/31)
	}
}
