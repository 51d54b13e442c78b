package jpegtest

// The examples of the standard's annex K: quantisation tables row by row, then Huffman tables.
var (
	luminance = [64]uint16{
		16, 11, 10, 16, 24, 40, 51, 61,
		12, 12, 14, 19, 26, 58, 60, 55,
		14, 13, 16, 24, 40, 57, 69, 56,
		14, 17, 22, 29, 51, 87, 80, 62,
		18, 22, 37, 56, 68, 109, 103, 77,
		24, 35, 55, 64, 81, 104, 113, 92,
		49, 64, 78, 87, 103, 121, 120, 101,
		72, 92, 95, 98, 112, 100, 103, 99,
	}
	chrominance = [64]uint16{
		17, 18, 24, 47, 99, 99, 99, 99,
		18, 21, 26, 66, 99, 99, 99, 99,
		24, 26, 56, 99, 99, 99, 99, 99,
		47, 66, 99, 99, 99, 99, 99, 99,
		99, 99, 99, 99, 99, 99, 99, 99,
		99, 99, 99, 99, 99, 99, 99, 99,
		99, 99, 99, 99, 99, 99, 99, 99,
		99, 99, 99, 99, 99, 99, 99, 99,
	}
)

// zigzag is the place in a block of the k-th coefficient of the file.
var zigzag = func() (z [64]int) {
	x, y := 0, 0
	for k := range z {
		z[k] = 8*y + x
		switch up := (x+y)%2 == 0; {
		case up && x == 7, !up && y < 7 && x == 0:
			y++
		case !up && y == 7, up && y == 0:
			x++
		case up:
			x, y = x+1, y-1
		default:
			x, y = x-1, y+1
		}
	}
	return z
}()

const (
	dcSymbols = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b"
)

// standardTables are the example tables by number: DC 0, DC 1, AC 0, AC 1.
func standardTables() [4]definition {
	return [4]definition{
		definition("\x00\x01\x05\x01\x01\x01\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00" + dcSymbols),
		definition("\x00\x03\x01\x01\x01\x01\x01\x01\x01\x01\x01\x00\x00\x00\x00\x00" + dcSymbols),
		acTable("\x00\x02\x01\x03\x03\x02\x04\x03\x05\x05\x04\x04\x00\x00\x01\x7d",
			"\x01\x02\x03\x00\x04\x11\x05\x12\x21\x31\x41\x06\x13\x51\x61\x07\x22\x71\x14\x32\x81\x91\xa1\x08"+
				"\x23\x42\xb1\xc1\x15\x52\xd1\xf0\x24\x33\x62\x72\x82"),
		acTable("\x00\x02\x01\x02\x04\x04\x03\x04\x07\x05\x04\x04\x00\x01\x02\x77",
			"\x00\x01\x02\x03\x11\x04\x05\x21\x31\x06\x12\x41\x51\x07\x61\x71\x13\x22\x32\x81\x08\x14\x42\x91"+
				"\xa1\xb1\xc1\x09\x23\x33\x52\xf0\x15\x62\x72\xd1\x0a\x16\x24\x34\xe1\x25\xf1"),
	}
}

// acTable completes a table whose codes of 16 bits go in order to the symbols that have none yet.
func acTable(counts, symbols string) definition {
	d := definition(counts + symbols)
	var have [256]bool
	for _, s := range []byte(symbols) {
		have[s] = true
	}
	for s := range 256 {
		if size := s & 15; !have[s] && size >= 1 && size <= 10 {
			d = append(d, byte(s))
		}
	}
	return d
}
