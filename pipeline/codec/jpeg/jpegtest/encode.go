package jpegtest

import (
	"encoding/binary"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// Encode writes a picture as a JPEG file. It panics if the options do not make a legal file.
func Encode(m *pixel.Image, o Options) []byte {
	o = o.withDefaults()
	e := &encoder{Options: o, w: m.W, h: m.H, quant: quantTables(o.Quality)}
	e.hMax, e.vMax = 1, 1
	for _, s := range o.Sampling {
		e.hMax, e.vMax = max(e.hMax, s[0]), max(e.vMax, s[1])
	}
	e.mcusX, e.mcusY = ceilDiv(m.W, 8*e.hMax), ceilDiv(m.H, 8*e.vMax)
	planes := split(m, o.rgb(), len(o.Sampling))
	for i, s := range o.Sampling {
		e.comps = append(e.comps, e.transform(planes[i], s, &e.quant[min(i, 1)]))
	}
	e.header()
	if o.Progressive != nil {
		for i := range o.Progressive {
			e.band(&o.Progressive[i])
		}
		return append(e.out, 0xff, 0xd9)
	}
	for _, s := range o.Scans {
		e.scan(s)
	}
	return append(e.out, 0xff, 0xd9)
}

type encoder struct {
	Options
	w, h         int
	hMax, vMax   int
	mcusX, mcusY int
	quant        [2][64]uint16
	comps        []component
	out          []byte
}

// component is the quantised blocks of a component.
type component struct {
	h, v             int
	blocks           [][64]int16 // in the order of the file
	stride           int         // blocks in a row, whole MCUs
	blocksX, blocksY int         // that hold samples
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// segment appends a marker segment.
func (e *encoder) segment(marker byte, body ...byte) {
	e.out = append(e.out, 0xff, marker)
	e.out = binary.BigEndian.AppendUint16(e.out, uint16(len(body)+2))
	e.out = append(e.out, body...)
}

// header appends everything before the first scan.
func (e *encoder) header() {
	e.out = append(e.out, 0xff, 0xd8)
	switch e.Header {
	case HeaderJFIF:
		e.segment(0xe0, []byte("JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00")...)
	case HeaderAdobeYCbCr:
		e.segment(0xee, []byte("Adobe\x00\x64\x00\x00\x00\x00\x01")...)
	case HeaderAdobeYCCK:
		e.segment(0xee, []byte("Adobe\x00\x64\x00\x00\x00\x00\x02")...)
	case HeaderAdobeRGB:
		e.segment(0xee, []byte("Adobe\x00\x64\x00\x00\x00\x00\x00")...)
	case HeaderNone:
	}
	tables := e.quant
	if e.ClaimQuant != nil {
		tables = *e.ClaimQuant
	}
	for i := range min(2, len(e.comps)) {
		e.segment(0xdb, quantBody(i, &tables[i], e.WideQuant)...)
	}
	sof := byte(0xc0)
	switch {
	case e.Progressive != nil:
		sof = 0xc2
	case e.Extended:
		sof = 0xc1
	}
	body := []byte{8, byte(e.h >> 8), byte(e.h), byte(e.w >> 8), byte(e.w), byte(len(e.comps))}
	for i, c := range e.comps {
		body = append(body, e.IDs[i], byte(c.h<<4|c.v), byte(min(i, 1)))
	}
	e.segment(sof, body...)
	if e.Restart > 0 {
		e.segment(0xdd, byte(e.Restart>>8), byte(e.Restart))
	}
}

func quantBody(number int, q *[64]uint16, wide bool) []byte {
	b := []byte{byte(number)}
	if wide {
		b[0] |= 0x10
	}
	for _, at := range zigzag {
		if wide {
			b = append(b, byte(q[at]>>8))
		}
		b = append(b, byte(q[at]))
	}
	return b
}

// scan appends a scan of some components.
func (e *encoder) scan(comps []int) {
	walk := func(symbol func(table, byte, uint32, int), restart func()) { e.walk(comps, symbol, restart) }
	tables := standardTables()
	if !e.StandardTables {
		tables = e.optimalTables(walk)
	}
	if !e.OmitTables {
		for t, d := range tables {
			if len(d) > 16 && (t&1 == 0 || len(e.comps) > 1) {
				e.segment(0xc4, append([]byte{byte(t>>1<<4 | t&1)}, d...)...)
			}
		}
	}
	e.scanHeader(comps, 0, 63, 0)
	e.data(walk, tables)
}

// scanHeader appends an SOS segment.
func (e *encoder) scanHeader(comps []int, first, last, bits byte) {
	body := []byte{byte(len(comps))}
	for _, c := range comps {
		body = append(body, e.IDs[c], byte(min(c, 1)*0x11))
	}
	e.segment(0xda, append(body, first, last, bits)...)
}

// walker visits the symbols of a scan. noTable is for bits that follow no symbol.
type walker func(symbol func(t table, symbol byte, v uint32, n int), restart func())

// optimalTables are the best for what a walker visits.
func (e *encoder) optimalTables(walk walker) (tables [4]definition) {
	var counts [4]frequencies
	walk(func(t table, symbol byte, _ uint32, _ int) {
		if t != noTable {
			counts[t][symbol]++
		}
	}, func() {})
	for t := range counts {
		tables[t] = counts[t].optimal()
	}
	return tables
}

// data appends the entropy-coded data of a scan.
func (e *encoder) data(walk walker, tables [4]definition) {
	var codes [4]codebook
	for t, d := range tables {
		codes[t] = d.codes()
	}
	w := bitWriter{out: e.out}
	restarts := byte(0)
	walk(func(t table, symbol byte, v uint32, n int) {
		if t != noTable {
			c := codes[t][symbol]
			w.put(c.bits, c.n)
		}
		w.put(v, n)
	}, func() {
		w.flush()
		w.out = append(w.out, 0xff, 0xd0+restarts&7)
		restarts++
	})
	w.flush()
	e.out = w.out
}
