package jpeg

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// oracle is a second decoder for Huffman-coded files, written for plainness: it reads bit by bit, holds all
// coefficients and makes the whole picture. It follows Pillow and libjpeg step by step, including the two separate walks
// over the header, and shares no code with the decoder under test.
type oracle struct {
	d       []byte
	p       int
	w, h    int
	comps   []*oracleComponent
	hm, vm  int
	mx, my  int
	sof     bool
	jfif    bool
	adobe   int
	qt      [4]*[64]int
	dc, ac  [4]*oracleTable
	ri      int
	scan    []*oracleComponent
	multi   bool
	pending int
	rst     int
	acc     uint64
	nb      int
	insuf   bool

	prog           bool
	ss, se, ah, al int
	eobrun         int
	scans          int
	good           int // the last row of MCUs that began with data
}

type oracleComponent struct {
	id, h, v, tq, td, ta int
	wb, hb, bw           int // blocks across and down that hold samples; blocks across in whole MCUs
	dw, dh               int
	coef                 [][64]int16
	q                    *[64]int
	pred                 int
	pix                  []byte
	bits, prev           [64]int // of progressive files: Al of each coefficient, -1: none; before the last scan of the component
}

type oracleTable struct {
	max, off [18]int
	vals     []byte
	bad      bool
}

// verdict is why a file is refused.
type verdict string

func (v verdict) Error() string { return string(v) }

const (
	errUnknown = verdict("refused by Pillow's header reader")
	errBroken  = verdict("refused by libjpeg")
	errCut     = verdict("ends too early")
	errLarge   = verdict("too large for a test")
)

// oraclePixels is the largest picture that the oracle decodes.
const oraclePixels = 1 << 22

func (o *oracle) fail(v verdict) { panic(v) }

// oracleDecode gives the RGB pixels of a file or a verdict.
func oracleDecode(b []byte) (w, h int, pix []byte, err error) {
	if err := pillowWalk(b); err != nil {
		return 0, 0, nil, err
	}
	o := &oracle{d: b, adobe: -1}
	defer func() {
		if e := recover(); e != nil {
			v, ok := e.(verdict)
			if !ok {
				panic(e)
			}
			w, h, pix, err = 0, 0, nil, v
		}
	}()
	o.run()
	pix = o.output()
	o.finish()
	return o.w, o.h, pix, nil
}

// pillowWalk repeats the loop with which Pillow finds size and mode.
func pillowWalk(b []byte) error {
	if !bytes.HasPrefix(b, []byte{0xff, 0xd8, 0xff}) {
		return errUnknown
	}
	ok := false
	var icc []string
	for p, s := 3, 0xff; ; {
		if p >= len(b) {
			return errUnknown
		}
		m := int(b[p])
		p++
		if s != 0xff {
			s = m
			continue
		}
		switch {
		case m == 0xff:
			continue
		case m == 0 || m == 0xc8 || m >= 0xd0 && m <= 0xd9 || m >= 0xf0 && m <= 0xfd:
			s = 0
			if p < len(b) {
				s = int(b[p])
				p++
			}
			continue
		case m < 0xc0:
			return errUnknown
		}
		if p+2 > len(b) {
			return errUnknown
		}
		n := max(0, int(b[p])<<8|int(b[p+1])-2)
		p += 2
		if p+n > len(b) {
			return errCut
		}
		seg := b[p : p+n]
		p += n
		switch {
		case m >= 0xc0 && m <= 0xcf && m != 0xc4 && m != 0xcc || m == 0xde:
			if len(seg) < 6 || seg[0] != 8 || seg[5] != 1 && seg[5] != 3 && seg[5] != 4 || (len(seg)-6)%3 != 0 {
				return errUnknown
			}
			ok = seg[1]|seg[2] != 0 && seg[3]|seg[4] != 0
			if slices.Sort(icc); len(icc) > 0 && len(icc[0]) < 14 {
				return errUnknown
			}
			icc = nil
		case m == 0xe2 && bytes.HasPrefix(seg, []byte("ICC_PROFILE\x00")):
			icc = append(icc, string(seg))
		case m == 0xed && bytes.HasPrefix(seg, []byte("Photoshop 3.0\x00")) && pillowPhotoshop(seg[14:], 14):
			return errUnknown
		case m == 0xdb:
			for len(seg) > 0 {
				n := 65
				if seg[0]>>4 != 0 {
					n = 129
				}
				if len(seg) < n {
					return errUnknown
				}
				seg = seg[n:]
			}
		case (m == 0xe0 && bytes.HasPrefix(seg, []byte("JFIF")) || m == 0xee && bytes.HasPrefix(seg, []byte("Adobe"))) && len(seg) < 7:
			return errUnknown
		case m == 0xda:
			if !ok {
				return errUnknown
			}
			return nil
		}
		s = 0
		if p < len(b) {
			s = int(b[p])
			p++
		}
	}
}

// pillowPhotoshop reports whether Pillow stumbles over the resources in b, which starts at a place of its segment: it takes the
// length of a name without a look at whether there is one.
func pillowPhotoshop(b []byte, at int) bool {
	if len(b) < 4 || string(b[:4]) != "8BIM" || len(b) < 6 {
		return false
	}
	if len(b) == 6 {
		return true
	}
	name := 7 + int(b[6])
	name += (at + name) & 1
	if len(b) < name+4 {
		return false
	}
	size := int(binary.BigEndian.Uint32(b[name:]))
	next := name + 4 + size
	if b[4] == 3 && b[5] == 0xed && (size < 14 || len(b) < name+4+14) {
		return false
	}
	next += (at + next) & 1
	return next <= len(b) && pillowPhotoshop(b[next:], at+next)
}

func (o *oracle) u8() int {
	if o.p >= len(o.d) {
		o.fail(errCut)
	}
	o.p++
	return int(o.d[o.p-1])
}

func (o *oracle) u16() int { return o.u8()<<8 | o.u8() }

func (o *oracle) nextMarker() int {
	for {
		c := o.u8()
		for c != 0xff {
			c = o.u8()
		}
		for c == 0xff {
			c = o.u8()
		}
		if c != 0 {
			return c
		}
	}
}

// markers reads up to SOS (true) or EOI (false), as libjpeg does.
func (o *oracle) markers() bool {
	for {
		m := o.pending
		o.pending = 0
		if m == 0 {
			m = o.nextMarker()
		}
		switch {
		case m == 0xd9 && !o.sof: // tables only: another file has to follow
			if o.u16() != 0xffd8 {
				o.fail(errBroken)
			}
			o.ri, o.jfif, o.adobe = 0, false, -1
			continue
		case m == 0xd9:
			return false
		case m == 0x01 || m >= 0xd0 && m <= 0xd7:
			continue
		case m == 0xc0 || m == 0xc1 || m == 0xc2:
			o.prog = m == 0xc2
			o.frame()
			continue
		case m < 0xc4, m > 0xc4 && m <= 0xcf && m != 0xcc, m == 0xd8, m == 0xde, m == 0xdf, m >= 0xf0 && m <= 0xfd:
			o.fail(errBroken)
		}
		start := o.p
		n := o.u16() - 2
		switch m {
		case 0xda:
			o.sos(n)
			return true
		case 0xc4:
			o.dht(n)
		case 0xdb:
			o.dqt(n)
		case 0xdd:
			if n != 2 {
				o.fail(errBroken)
			}
			o.ri = o.u16()
		case 0xcc:
			for ; n > 0; n -= 2 {
				if i, v := o.u8(), o.u8(); i >= 32 || i < 16 && v&15 > v>>4 {
					o.fail(errBroken)
				}
			}
			if n != 0 {
				o.fail(errBroken)
			}
		default:
			n = max(n, 0)
			if m == 0xe0 && n >= 14 && o.has("JFIF\x00") {
				o.jfif = true
			}
			if m == 0xee && n >= 12 && o.has("Adobe") && o.p+11 < len(o.d) {
				o.adobe = int(o.d[o.p+11])
			}
			o.p = start + 2 + n
			if o.p > len(o.d) {
				o.fail(errCut)
			}
		}
	}
}

func (o *oracle) has(s string) bool {
	return o.p+len(s) <= len(o.d) && string(o.d[o.p:o.p+len(s)]) == s
}

func (o *oracle) dht(n int) {
	for n > 16 {
		t := o.u8()
		var counts [17]int
		sum := 0
		for i := 1; i <= 16; i++ {
			counts[i] = o.u8()
			sum += counts[i]
		}
		n -= 17
		if sum > 256 || sum > n {
			o.fail(errBroken)
		}
		h := &oracleTable{vals: make([]byte, 256)}
		for i := range sum {
			h.vals[i] = byte(o.u8())
		}
		n -= sum
		if t&^0x10 > 3 {
			o.fail(errBroken)
		}
		code, k := 0, 0
		for i := 1; i <= 16; i++ {
			h.off[i] = k - code
			code += counts[i]
			k += counts[i]
			h.max[i] = -1
			if counts[i] > 0 {
				h.max[i] = code - 1
				h.bad = h.bad || code >= 1<<i
			}
			code <<= 1
		}
		h.vals = h.vals[:sum]
		if t&0x10 != 0 {
			o.ac[t&15] = h
		} else {
			o.dc[t] = h
		}
	}
	if n != 0 {
		o.fail(errBroken)
	}
}

func (o *oracle) dqt(n int) {
	for n > 0 {
		t := o.u8()
		n--
		if t&15 > 3 {
			o.fail(errBroken)
		}
		q := &[64]int{}
		for i := range 64 {
			if t>>4 != 0 {
				q[oracleZigzag[i]] = o.u16()
				n -= 2
			} else {
				q[oracleZigzag[i]] = o.u8()
				n--
			}
		}
		o.qt[t&15] = q
	}
	if n != 0 {
		o.fail(errBroken)
	}
}

// oracleZigzag walks the diagonals; beyond the last coefficient it stays there.
var oracleZigzag = func() (at [80]int) {
	x, y := 0, 0
	for k := range at {
		at[k] = 8*y + x
		switch odd := (x+y)%2 == 1; {
		case k >= 63:
		case !odd && x == 7, odd && x == 0 && y < 7:
			y++
		case odd && y == 7, !odd && y == 0:
			x++
		case odd:
			x, y = x-1, y+1
		default:
			x, y = x+1, y-1
		}
	}
	return at
}()

func (o *oracle) frame() {
	if o.sof {
		o.fail(errBroken)
	}
	n := o.u16()
	prec := o.u8()
	o.h, o.w = o.u16(), o.u16()
	nc := o.u8()
	if o.w == 0 || o.h == 0 || n-8 != 3*nc || prec != 8 {
		o.fail(errBroken)
	}
	o.sof = true
	for range nc {
		id, hv := o.u8(), o.u8()
		o.comps = append(o.comps, &oracleComponent{id: id, h: hv >> 4, v: hv & 15, tq: o.u8()})
	}
}

func (o *oracle) setup() {
	if o.w > 65500 || o.h > 65500 {
		o.fail(errBroken)
	}
	if o.w*o.h > oraclePixels {
		o.fail(errLarge)
	}
	o.hm, o.vm = 1, 1
	for _, c := range o.comps {
		if c.h < 1 || c.h > 4 || c.v < 1 || c.v > 4 {
			o.fail(errBroken)
		}
		o.hm, o.vm = max(o.hm, c.h), max(o.vm, c.v)
	}
	ceil := func(a, b int) int { return (a + b - 1) / b }
	o.mx, o.my = ceil(o.w, 8*o.hm), ceil(o.h, 8*o.vm)
	for _, c := range o.comps {
		c.wb, c.hb = ceil(o.w*c.h, o.hm*8), ceil(o.h*c.v, o.vm*8)
		c.dw, c.dh = ceil(o.w*c.h, o.hm), ceil(o.h*c.v, o.vm)
		c.bw = o.mx * c.h
		c.coef = make([][64]int16, c.bw*o.my*c.v)
		for i := range c.bits {
			c.bits[i], c.prev[i] = -1, -1
		}
		if o.hm%c.h != 0 || o.vm%c.v != 0 {
			o.fail(errBroken)
		}
	}
	o.multi = o.prog || len(o.scan) < len(o.comps)
}

func (o *oracle) sos(n int) {
	if !o.sof {
		o.fail(errBroken)
	}
	k := o.u8()
	if n != k*2+4 || k < 1 || k > 4 {
		o.fail(errBroken)
	}
	o.scan = nil
	for i := range k {
		id, t := o.u8(), o.u8()
		var c *oracleComponent
		for j := i; j < len(o.comps) && c == nil; j++ {
			if o.comps[j].id == id {
				c = o.comps[j]
			}
		}
		for _, other := range o.scan {
			if other == c {
				c = nil
			}
		}
		if c == nil {
			o.fail(errBroken)
		}
		c.td, c.ta = t>>4, t&15
		o.scan = append(o.scan, c)
	}
	o.ss, o.se = o.u8(), o.u8()
	a := o.u8()
	o.ah, o.al = a>>4, a&15
	o.rst = 0
	o.scans++
}

func (o *oracle) run() {
	o.p = 2
	if !o.markers() {
		o.fail(errBroken)
	}
	o.setup()
	if !o.prog {
		o.standard()
	}
	for {
		o.decodeScan()
		if !o.multi || !o.markers() {
			return
		}
	}
}

// standard defines the standard's tables where the file has none.
func (o *oracle) standard() {
	p, d := o.p, o.d
	for i, s := range []string{standardDC0, standardDC1, standardAC0, standardAC1} {
		t := &o.dc[i&1]
		if i > 1 {
			t = &o.ac[i&1]
		}
		if *t == nil {
			o.p, o.d = 0, append([]byte{byte(i>>1<<4 | i&1)}, s...)
			o.dht(len(o.d))
		}
	}
	o.p, o.d = p, d
}

// finish reads what follows the last row of a file of one scan: an error there still refuses the file, a missing end does not.
func (o *oracle) finish() {
	if o.multi {
		return
	}
	defer func() {
		if e := recover(); e != nil && e != any(errCut) {
			panic(e)
		}
	}()
	if o.pending == 0 {
		o.pending = o.nextMarker()
	}
	o.d = o.d[:min(len(o.d), (o.p+1<<16-1)>>16<<16)] // the piece that Pillow has read
	if o.markers() {
		o.fail(errBroken)
	}
}

// fill is libjpeg's refill: it reads until 57 bits are there or a marker stops it, then supplies zeros. It does not stop
// where the bytes end, as libjpeg does, but goes on with zeros: decodeScan has made sure that a marker follows.
func (o *oracle) fill(need int) {
	for o.nb < 57 && o.pending == 0 {
		b := o.u8()
		if b == 0xff {
			for b == 0xff {
				b = o.u8()
			}
			if b != 0 {
				o.pending = b
				break
			}
			b = 0xff
		}
		o.acc = o.acc<<8 | uint64(b)
		o.nb += 8
	}
	if o.nb < need {
		o.insuf = true
		o.acc <<= uint(57 - o.nb)
		o.nb = 57
	}
}

func (o *oracle) get(n int) int {
	if n == 0 {
		return 0
	}
	if o.nb < n {
		o.fill(n)
	}
	o.nb -= n
	return int(o.acc>>uint(o.nb)) & (1<<n - 1)
}

func (o *oracle) symbol(h *oracleTable) int {
	code := 0
	for l := 1; l <= 16; l++ {
		code = code<<1 | o.get(1)
		if code <= h.max[l] {
			return int(h.vals[code+h.off[l]])
		}
	}
	o.get(1)
	return 0
}

func (o *oracle) coefficient(s int) int {
	v := o.get(s)
	if s > 0 && v < 1<<(s-1) {
		v += 1 - 1<<s
	}
	return v
}

func (o *oracle) decodeScan() {
	blocks := 0
	for _, c := range o.scan {
		if c.q == nil {
			if c.tq > 3 || o.qt[c.tq] == nil {
				o.fail(errBroken)
			}
			c.q = o.qt[c.tq]
		}
		blocks += c.h * c.v
		if !o.prog || o.ss == 0 && o.ah == 0 {
			if c.td > 3 || o.dc[c.td] == nil || o.dc[c.td].bad {
				o.fail(errBroken)
			}
			for _, s := range o.dc[c.td].vals {
				if s > 15 {
					o.fail(errBroken)
				}
			}
		}
		if (!o.prog || o.ss > 0) && (c.ta > 3 || o.ac[c.ta] == nil || o.ac[c.ta].bad) {
			o.fail(errBroken)
		}
		c.pred = 0
	}
	if o.prog {
		o.progression()
	}
	if len(o.scan) > 1 && blocks > 10 {
		o.fail(errBroken)
	}
	o.endsInMarker()
	o.nb, o.acc, o.insuf, o.eobrun = 0, 0, false, 0
	todo := o.ri
	mcu := func(row int, f func()) {
		if !o.insuf {
			o.good = row
		}
		if o.ri > 0 {
			if todo == 0 {
				o.restart()
				todo = o.ri
			}
			todo--
		}
		if !o.insuf {
			f()
		}
	}
	if len(o.scan) == 1 {
		c := o.scan[0]
		for y := range c.hb {
			for x := range c.wb {
				mcu(y/c.v, func() { o.block(c, &c.coef[y*c.bw+x]) })
			}
		}
	} else {
		for y := range o.my {
			for x := range o.mx {
				mcu(y, func() {
					for _, c := range o.scan {
						for b := range c.h * c.v {
							o.block(c, &c.coef[(y*c.v+b/c.h)*c.bw+x*c.h+b%c.h])
						}
					}
				})
			}
		}
	}
	o.nb = 0
}

// endsInMarker applies the one rule of the decoder under test that is not libjpeg's: entropy-coded data that ends without a
// marker is cut.
func (o *oracle) endsInMarker() {
	p, pending, rst := o.p, o.pending, o.rst
	n := o.mx * o.my
	if len(o.scan) == 1 {
		n = o.scan[0].wb * o.scan[0].hb
	}
	if o.ri > 0 {
		for range (n - 1) / o.ri {
			o.restart()
		}
	}
	if o.pending == 0 {
		o.nextMarker()
	}
	o.p, o.pending, o.rst = p, pending, rst
}

func (o *oracle) block(c *oracleComponent, b *[64]int16) {
	if o.prog {
		o.band(c, b)
		return
	}
	c.pred += o.coefficient(o.symbol(o.dc[c.td]))
	b[0] = int16(c.pred)
	for k := 1; k < 64; k++ {
		s := o.symbol(o.ac[c.ta])
		run, size := s>>4, s&15
		if size == 0 {
			if run != 15 {
				break
			}
			k += 15
			continue
		}
		k += run
		b[oracleZigzag[k]] = int16(o.coefficient(size))
	}
}

// restart reads the restart marker or works out where the data is (libjpeg's jpeg_resync_to_restart).
func (o *oracle) restart() {
	o.nb, o.acc, o.eobrun = 0, 0, 0
	if o.pending == 0 {
		o.pending = o.nextMarker()
	}
	for m := o.pending; m != 0; m = o.pending {
		ahead := (m - 0xd0 - o.rst) & 7
		if m >= 0xc0 && (m < 0xd0 || m > 0xd7 || ahead == 1 || ahead == 2) {
			break
		}
		o.pending = 0
		if m < 0xc0 || ahead == 6 || ahead == 7 {
			o.pending = o.nextMarker()
		}
	}
	o.rst = (o.rst + 1) & 7
	for _, c := range o.scan {
		c.pred = 0
	}
	if o.pending == 0 {
		o.insuf = false
	}
}

func (o *oracle) output() []byte {
	var full [4][]byte
	smooth := o.smoothing()
	for i, c := range o.comps {
		c.pix = make([]byte, len(c.coef)*64)
		for b := range c.coef {
			if c.q == nil {
				c.q = new([64]int)
			}
			coef := c.coef[b]
			if x, y := b%c.bw, b/c.bw; smooth && x < c.wb && y < c.hb {
				coef = o.smoothed(c, x, y)
			}
			s := oracleIDCT(&coef, c.q)
			for j, v := range s {
				c.pix[(b/c.bw*8+j/8)*c.bw*8+b%c.bw*8+j%8] = v
			}
		}
		full[i] = o.upsample(c)
	}
	out := make([]byte, 3*o.w*o.h)
	clip := func(v int) byte { return byte(max(0, min(255, v))) }
	rgb := len(o.comps) == 4 && o.adobe <= 0 || len(o.comps) == 3 && !o.jfif && (o.adobe == 0 || o.adobe < 0 && len(o.comps) == 3 &&
		o.comps[0].id == 'R' && o.comps[1].id == 'G' && o.comps[2].id == 'B')
	for i := range o.w * o.h {
		p := out[3*i : 3*i+3]
		switch {
		case len(o.comps) == 1:
			p[0], p[1], p[2] = full[0][i], full[0][i], full[0][i]
		case rgb:
			p[0], p[1], p[2] = full[0][i], full[1][i], full[2][i]
		default:
			y, cb, cr := int(full[0][i]), int(full[1][i])-128, int(full[2][i])-128
			p[0] = clip(y + (91881*cr+32768)>>16)
			p[1] = clip(y + (-22554*cb-46802*cr+32768)>>16)
			p[2] = clip(y + (116130*cb+32768)>>16)
		}
		if len(o.comps) == 4 { // libjpeg's CMYK, inverted by Pillow, then its CMYK to RGB
			for j, v := range p {
				if o.adobe > 0 {
					v = 255 - v // YCCK to CMYK
				}
				c, k := 255-int(v), int(full[3][i]) // k is 255 less the inverted black
				t := c*k + 128
				p[j] = clip(k - (t>>8+t)>>8)
			}
		}
	}
	return out
}

// upsample brings a component to full size. Only its dw x dh samples are looked at: edges repeat.
func (o *oracle) upsample(c *oracleComponent) []byte {
	fx, fy := o.hm/c.h, o.vm/c.v
	out := make([]byte, o.w*o.h)
	at := func(x, y int) int { return int(c.pix[max(0, min(y, c.dh-1))*c.bw*8+max(0, min(x, c.dw-1))]) }
	for i := range out {
		x, y := i%o.w, i/o.w
		left, above := x/2-1+2*(x&1), y/2-1+2*(y&1) // the neighbour on the near side
		v := 0
		switch {
		case fx == 2 && fy == 1 && c.dw > 2:
			v = (3*at(x/2, y) + at(left, y) + 1 + x&1) >> 2
		case fx == 1 && fy == 2:
			v = (3*at(x, y/2) + at(x, above) + 1 + y&1) >> 2
		case fx == 2 && fy == 2 && c.dw > 2:
			column := func(x int) int { return 3*at(x, y/2) + at(x, above) }
			v = (3*column(x/2) + column(left) + 8 - x&1) >> 4
		default:
			v = at(x/fx, y/fy)
		}
		out[i] = byte(v)
	}
	return out
}

// oracleIDCT is libjpeg's accurate integer transform as its x86 vector code computes it.
func oracleIDCT(b *[64]int16, q *[64]int) (out [64]byte) {
	wrap := func(v int) int { return int(int16(v)) }
	sat := func(v int) int { return max(-32768, min(32767, v)) }
	var t [64]int
	ac := false
	for i := range t {
		t[i] = wrap(int(b[i]) * wrap(q[i]))
		ac = ac || i > 7 && b[i] != 0
	}
	line := func(p, step int, shift uint) {
		var in [8]int
		for i := range in {
			in[i] = t[p+i*step]
		}
		t3, t2 := in[2]*10703+in[6]*4433, in[2]*4433-in[6]*10704
		t0, t1 := wrap(in[0]+in[4])<<13, wrap(in[0]-in[4])<<13
		z3, z4 := wrap(in[7]+in[3]), wrap(in[5]+in[1])
		y3, y4 := -z3*6436+z4*9633, z3*9633+z4*6437
		even := [4]int{t0 + t3, t1 + t2, t1 - t2, t0 - t3}
		odd := [4]int{
			-in[7]*7373 + in[1]*4926 + y4, -in[5]*20995 + in[3]*4177 + y3,
			-in[5]*4176 - in[3]*20995 + y4, -in[7]*4927 - in[1]*7373 + y3,
		}
		for i := range 4 {
			t[p+i*step] = sat((even[i] + odd[i] + 1<<(shift-1)) >> shift)
			t[p+(7-i)*step] = sat((even[i] - odd[i] + 1<<(shift-1)) >> shift)
		}
	}
	for x := range 8 {
		if ac {
			line(x, 8, 11)
			continue
		}
		for y := 7; y >= 0; y-- {
			t[8*y+x] = wrap(t[x] << 2)
		}
	}
	for y := range 8 {
		line(8*y, 1, 18)
	}
	for i, v := range t {
		out[i] = byte(max(-128, min(127, v)) + 128)
	}
	return out
}
