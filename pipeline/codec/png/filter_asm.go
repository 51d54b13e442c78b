//go:build amd64 && !purego

package png

//go:generate go -C ../../internal/kernel/_gen run ./png -out ../../../codec/png/filter_amd64.s -stubs ../../../codec/png/filter_stubs_amd64.go -pkg png

// unfilterVector is unfilterInto in assembly. dst, raw and prev have filterPad bytes more than the row.
func unfilterVector(filter byte, dst, raw, prev []byte, bpp int) {
	n := len(raw)
	_, _, _ = dst[:n+filterPad], raw[:n+filterPad], prev[:n+filterPad]
	d, r, p := &dst[0], &raw[0], &prev[0]
	switch filter {
	case 0:
		copy(dst[:n], raw)
	case 1:
		unfilterSub(d, r, p, n, bpp)
	case 2:
		unfilterUp(d, r, p, n)
	case 3:
		unfilterAverage(d, r, p, n, bpp)
	case 4:
		unfilterPaeth(d, r, p, n, bpp)
	}
}

// unfilterWave undoes Paeth's filter of 4 or 8 rows to the first lines.
func unfilterWave(l *lines, f filtered, rows int) {
	raw := f.data[1 : 1+(rows-1)*f.stride+f.n+filterPad]
	dst, above := l.memory[:rows*l.pitch], l.line(l.last)
	if rows == 8 {
		unfilterPaeth8(&dst[0], &raw[0], &above[0], f.n, f.bpp, l.pitch, f.stride)
		return
	}
	unfilterPaeth4(&dst[0], &raw[0], &above[0], f.n, f.bpp, l.pitch, f.stride)
}
