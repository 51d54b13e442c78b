package jpeg

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
)

// sample is a file of the corpus.
type sample struct {
	name string
	data []byte
}

type corpus struct {
	samples []sample
	random  *rand.Rand
}

func (c *corpus) add(name string, data []byte) {
	c.samples = append(c.samples, sample{name, data})
}

// newCorpus makes the files whose verdicts and pixels testdata/pillow.txt holds. They are the same on every machine.
func newCorpus() []sample {
	c := &corpus{random: rand.New(rand.NewPCG(7, 7))}
	c.layouts()
	c.colours()
	c.scripts()
	picture := jpegtest.Photograph(5, 5, 100, 75)
	base := jpegtest.Encode(picture, jpegtest.Options{Sampling: jpegtest.S420, Quality: 70})
	restarts := jpegtest.Encode(picture, jpegtest.Options{Sampling: jpegtest.S420, Quality: 70, Restart: 4})
	c.mutants("base", base)
	c.mutants("rst", restarts)
	c.restartMutants(restarts)
	c.progressive()
	c.fourComponents()
	c.progressiveMutants("prog", jpegtest.Encode(picture, jpegtest.Options{Sampling: jpegtest.S420, Quality: 70, Progressive: jpegtest.Script(3)}))
	c.progressiveMutants("prog-rst", jpegtest.Encode(picture, jpegtest.Options{Sampling: jpegtest.S422, Quality: 50, Progressive: jpegtest.Script(3), Restart: 9}))
	for i, b := range [][]byte{nil, {0xff, 0xd8}, {0xff, 0xd8, 0xff}, {0xff, 0xd8, 0xff, 0xd9}, make([]byte, 1000)} {
		c.add(fmt.Sprintf("tiny.%d", i), b)
	}
	for i := range 16 {
		c.add(fmt.Sprintf("folder.%d", i), jpegtest.File(i%3, i, 9))
	}
	c.tails(jpegtest.File(1, 1, 9))
	c.scansInOne(jpegtest.Encode(picture, jpegtest.Options{Sampling: jpegtest.S422, Quality: 50, Progressive: jpegtest.Script(3), Restart: 9}))
	return c.samples
}

// tails have something wrong behind the scan, in the same 64 KiB of the file and in later ones.
func (c *corpus) tails(b []byte) {
	end := find(b, 0xda, 0).end
	comment := append([]byte{0xff, 0xfe, 0xff, 0xff}, make([]byte, 0xfffd)...)
	tails := map[string]string{"marker": "\xff\xfc", "soi": "\xff\xd8", "scan": "\xff\xda\x00\x0c\x03\x01\x00\x02\x11\x03\x11\x00\x3f\x00"}
	for _, name := range inOrder(tails) {
		x := tails[name]
		c.add("tail."+name, insert(b, end, []byte(x)))
		c.add("tail.late-"+name, insert(b, end, slices.Concat(comment, []byte(x))))
	}
}

// scansInOne lack what lies between two restart markers of the same number in different scans: what follows is read as the first one's, and soon
// runs out.
func (c *corpus) scansInOne(b []byte) {
	for _, pair := range [][2]int{{11, 12}, {11, 13}, {12, 13}} {
		first, second := find(b, 0xda, pair[0]), find(b, 0xda, pair[1])
		for number := range byte(6) {
			marker := []byte{0xff, 0xd0 | number}
			from := bytes.LastIndex(b[first.start:first.end], marker)
			to := bytes.Index(b[second.start:second.end], marker)
			if from >= 0 && to >= 0 {
				c.add(fmt.Sprintf("one.%d-%d.rst%d", pair[0], pair[1], number), cut(b, span{start: first.start + from, end: second.start + to}))
			}
		}
	}
}

// samplings are all that have a name and some that should have none.
var samplings = map[string][]jpegtest.Factors{
	"444": jpegtest.S444, "420": jpegtest.S420, "422": jpegtest.S422, "440": jpegtest.S440, "411": jpegtest.S411,
	"410": jpegtest.S410, "grey": jpegtest.Grey, "grey22": {{2, 2}}, "grey41": {{4, 1}},
	"441": {{1, 4}, {1, 1}, {1, 1}}, "24": {{2, 4}, {1, 1}, {1, 1}}, "31": {{3, 1}, {1, 1}, {1, 1}},
	"13": {{1, 3}, {1, 1}, {1, 1}}, "32": {{3, 2}, {1, 1}, {1, 1}}, "22-21-11": {{2, 2}, {2, 1}, {1, 1}},
	"22-12-11": {{2, 2}, {1, 2}, {1, 1}}, "22-22-11": {{2, 2}, {2, 2}, {1, 1}}, "11-22-22": {{1, 1}, {2, 2}, {2, 2}},
	"11-21-12": {{1, 1}, {2, 1}, {1, 2}}, "21-12-11": {{2, 1}, {1, 2}, {1, 1}}, "12-21-11": {{1, 2}, {2, 1}, {1, 1}},
	"k1111": jpegtest.CMYK, "k2112": {{2, 2}, {1, 1}, {1, 1}, {2, 2}}, "42-22-11": {{4, 2}, {1, 1}, {1, 1}}, "12-11-12": {{1, 2}, {1, 1}, {1, 2}}, "11-14-11": {{1, 1}, {1, 4}, {1, 1}},
}

// layouts are all samplings in sizes that leave MCUs full, cut and nearly empty.
func (c *corpus) layouts() {
	for _, name := range inOrder(samplings) {
		for i, size := range [][2]int{{61, 45}, {17, 9}, {32, 64}, {3, 2}, {1, 1}, {5, 33}, {4, 4}} {
			m := jpegtest.Photograph(uint64(i), 1, size[0], size[1])
			o := jpegtest.Options{Sampling: samplings[name], Quality: 60 + 5*i, Restart: i % 4}
			c.add(fmt.Sprintf("layout.%s.%dx%d", name, size[0], size[1]), jpegtest.Encode(m, o))
		}
	}
	fractions := map[string][]jpegtest.Factors{
		"31-21-11": {{3, 1}, {2, 1}, {1, 1}}, "23-12-11": {{2, 3}, {1, 2}, {1, 1}}, "43-11-31": {{4, 1}, {1, 1}, {3, 1}},
	}
	for _, name := range inOrder(fractions) {
		o := jpegtest.Options{Sampling: fractions[name]}
		c.add("fraction."+name, jpegtest.Encode(jpegtest.Photograph(1, 1, 40, 40), o))
	}
}

// colours are the ways to say which colour space a file has, and tables.
func (c *corpus) colours() {
	m := jpegtest.Photograph(3, 2, 35, 21)
	for h := range jpegtest.HeaderAdobeRGB + 1 {
		for _, ids := range []string{"\x01\x02\x03", "\x00\x01\x02", "RGB", "rgb", "\x04\x05\x06", "\x01\x01\x01"} {
			o := jpegtest.Options{Header: h, IDs: []byte(ids)}
			c.add(fmt.Sprintf("colour.%d.%x", h, ids), jpegtest.Encode(m, o))
		}
	}
	adobe := []byte("\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00")
	plain := jpegtest.Encode(m, jpegtest.Options{Sampling: jpegtest.S420})
	c.add("colour.jfif-adobe0", insert(plain, 20, adobe))
	c.add("colour.adobe0-jfif", insert(plain, 2, adobe))
	c.add("colour.jfif13", overwrite(plain, 4, 0, 15))
	named := jpegtest.Encode(m, jpegtest.Options{IDs: []byte("RGB")})
	c.add("colour.jfif14-RGB", named)
	c.add("colour.jfif13-RGB", overwrite(named, 4, 0, 15))
	frame := find(named, 0xc0, 0).start // a file of tables is forgotten, but for the tables
	c.add("colour.tables-RGB", slices.Concat(named[:frame], []byte("\xff\xdd\x00\x04\x00\x02"), eoi, named[:2], named[frame:]))
	named = jpegtest.Encode(m, jpegtest.Options{Header: jpegtest.HeaderAdobeYCbCr, IDs: []byte("RGB")})
	c.add("colour.adobe12-RGB", named)
	c.add("colour.adobe11-RGB", overwrite(named, 4, 0, 13))
	for i := range 13 {
		o := jpegtest.Options{Sampling: samplings[inOrder(samplings)[i]], Quality: 30 + 5*i}
		o.StandardTables, o.OmitTables = i%3 == 0, i%3 == 1
		o.Extended, o.WideQuant = i%2 == 0, i%4 < 2
		c.add(fmt.Sprintf("tables.%d", i), jpegtest.Encode(m, o))
	}
	for i := range 24 { // dequantised values far outside of what a picture can have
		var q [2][64]uint16
		for t := range q {
			for j := range q[t] {
				q[t][j] = uint16(c.random.Uint32())
				if i%3 == 0 {
					q[t][j] |= 0x8000
				}
			}
		}
		o := jpegtest.Options{Sampling: samplings[inOrder(samplings)[i]], ClaimQuant: &q, WideQuant: true, Quality: 20 + 3*i}
		c.add(fmt.Sprintf("wild.%d", i), jpegtest.Encode(m, o))
	}
}

// scripts are files of several scans.
func (c *corpus) scripts() {
	for i, scans := range [][][]int{
		{{0}, {1}, {2}}, {{2}, {1}, {0}}, {{0}, {1, 2}}, {{0, 1}, {2}}, {{1, 2}, {0}}, {{0, 2}, {1}}, // complete
		{{0}}, {{0}, {1}}, {{1, 2}}, // components without a scan
		{{0}, {1}, {2}, {0}}, {{0}, {0}, {1}, {2}}, {{0}, {0, 1, 2}}, {{0, 1}, {1, 2}}, // repeated
		{{2, 1, 0}}, {{0}, {2, 1}}, {{1, 0}, {2}}, // out of order
		{{0, 1, 2}, {0}}, {{0, 1, 2}, {0, 1, 2}}, // more behind a complete one
	} {
		for j, s := range [][]jpegtest.Factors{jpegtest.S420, jpegtest.S444, samplings["12-21-11"], samplings["22-22-11"]} {
			o := jpegtest.Options{Sampling: s, Scans: scans, Restart: []int{0, 1, 3, 0}[(i+j)%4], Quality: 75}
			b := jpegtest.Encode(jpegtest.Photograph(uint64(i), 4, 40+i, 30-j), o)
			c.add(fmt.Sprintf("script.%v.%d", scans, j), b)
			if j == 0 {
				c.add(fmt.Sprintf("script.%v.no-eoi", scans), b[:len(b)-2])
				c.add(fmt.Sprintf("script.%v.cut", scans), append(bytes.Clone(b[:2*len(b)/3]), 0xff, 0xd9))
				c.add(fmt.Sprintf("script.%v.drop", scans), append(bytes.Clone(b[:len(b)/2]), b[len(b)/2+5:]...))
			}
		}
	}
	big := [][]int{{0}, {1}, {2}}
	all22 := []jpegtest.Factors{{2, 2}, {2, 2}, {2, 2}}
	m := jpegtest.Photograph(8, 8, 33, 33)
	c.add("script.12-blocks", jpegtest.Encode(m, jpegtest.Options{Sampling: all22}))
	c.add("script.12-blocks-apart", jpegtest.Encode(m, jpegtest.Options{Sampling: all22, Scans: big}))
	quant := jpegtest.Encode(m, jpegtest.Options{Scans: big, Quality: 50})
	second := find(quant, 0xda, 1)
	c.add("script.quant-redefined", insert(quant, second.start, quantSegment(1, 99)))
	again := jpegtest.Encode(m, jpegtest.Options{Scans: [][]int{{0}, {1}, {2}, {0}}, Quality: 50})
	c.add("script.quant-again", insert(again, find(again, 0xda, 3).start, quantSegment(0, 77)))
	c.add("script.quant-late", insert(cut(quant, find(quant, 0xdb, 1)), second.start-3, quantSegment(1, 7)))
}

// quantSegment is a DQT segment for a table of equal values.
func quantSegment(number, v byte) []byte {
	return append([]byte{0xff, 0xdb, 0, 67, number}, bytes.Repeat([]byte{v}, 64)...)
}

// span is a marker segment; that of a scan includes the data.
type span struct {
	marker     byte
	start, end int
}

// spans lists the segments of a well-formed file.
func spans(b []byte) (s []span) {
	for p := 2; p+4 <= len(b); {
		if b[p+1] == 0xd9 {
			break
		}
		end := p + 2 + int(binary.BigEndian.Uint16(b[p+2:]))
		if b[p+1] == 0xda {
			for b[end] != 0xff || b[end+1] == 0 || b[end+1]&^7 == 0xd0 {
				end++
			}
		}
		s = append(s, span{b[p+1], p, end})
		p = end
	}
	return s
}

// find gives the n-th segment with a marker.
func find(b []byte, marker byte, n int) span {
	for _, s := range spans(b) {
		if s.marker == marker {
			if n == 0 {
				return s
			}
			n--
		}
	}
	panic(fmt.Sprintf("no marker %x", marker))
}

func insert(b []byte, at int, x []byte) []byte { return slices.Concat(b[:at], x, b[at:]) }
func cut(b []byte, s span) []byte              { return slices.Concat(b[:s.start], b[s.end:]) }
func repeatPart(b []byte, s span) []byte       { return insert(b, s.end, b[s.start:s.end]) }

// overwrite puts x at a place.
func overwrite(b []byte, at int, x ...byte) []byte {
	b = bytes.Clone(b)
	copy(b[at:], x)
	return b
}
