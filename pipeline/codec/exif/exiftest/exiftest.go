// Package exiftest makes pictures whose EXIF data and XMP are right, odd and wrong in every way that the rules of TIFF, EXIF, XMP and of their places in JPEG, PNG and
// WebP leave: the same each time. It is for tests, and imports nothing of ours.
package exiftest

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/klauspost/compress/zlib"
)

// Types of values, by TIFF's numbers.
const (
	typeASCII = iota + 2
	typeShort
	typeLong
	typeRational
	_
	_
	typeSignedShort
	typeSignedLong
	typeSignedRational
	typeFloat
	typeDouble
	typeIFD
	typeLong8 = 16
)

const (
	orientationTag = 0x0112
	entryBytes     = 12
)

// What stands before EXIF data and XMP in JPEG segments.
var (
	exifMark = []byte("Exif\x00\x00")
	xmpMark  = []byte("http://ns.adobe.com/xap/1.0/\x00")
)

// Names of texts in PNG files.
const (
	exifName    = "exif"
	profileName = "Raw profile type exif"
	packetName  = "XML:com.adobe.xmp"
	xmpName     = "xmp"
)

// entry is one of a directory. Its value is in the entry where it fits, else at the place given, by default behind the directory.
type entry struct {
	tag, kind uint16
	count     uint32
	value     []byte
	at        uint32
}

// byteOrder reads and writes numbers.
type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// tiff is EXIF data of which every part can be wrong.
type tiff struct {
	header  string
	first   uint32 // where the directory begins, 0: behind the header
	entries []entry
	claimed int // more entries than there are
	next    []entry
	cut     int // bytes that are missing at the end
}

func (t *tiff) order() byteOrder {
	if strings.HasPrefix(t.header, "M") {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func (t *tiff) bytes() []byte {
	order := t.order()
	first := t.first
	if first == 0 {
		first = 8
	}
	b := append([]byte(t.header), order.AppendUint32(nil, first)...)
	b = t.directory(b, t.entries, t.claimed, len(t.next) > 0)
	if len(t.next) > 0 {
		b = t.directory(b, t.next, 0, false)
	}
	return b[:max(0, len(b)-t.cut)]
}

func (t *tiff) directory(b []byte, entries []entry, claimed int, more bool) []byte {
	order := t.order()
	b = order.AppendUint16(b, uint16(len(entries)+claimed))
	end := len(b) + entryBytes*len(entries) + 4
	var behind []byte
	for _, e := range entries {
		b = order.AppendUint16(order.AppendUint16(b, e.tag), e.kind)
		b = order.AppendUint32(b, e.count)
		switch {
		case e.at != 0:
			b = order.AppendUint32(b, e.at)
		case len(e.value) > 4:
			b = order.AppendUint32(b, uint32(end+len(behind)))
		default:
			b = append(b, append(slices.Clone(e.value), 0, 0, 0, 0)[:4]...)
			continue
		}
		behind = append(behind, e.value...)
	}
	next := uint32(0)
	if more {
		next = uint32(end + len(behind))
	}
	return append(order.AppendUint32(b, next), behind...)
}

// number is a value of a kind, of n equal ones.
func number(order byteOrder, kind uint16, v int, n int) []byte {
	var one []byte
	switch kind {
	case typeShort, typeSignedShort:
		one = order.AppendUint16(nil, uint16(v))
	case typeLong, typeSignedLong, typeIFD:
		one = order.AppendUint32(nil, uint32(v))
	case typeRational, typeSignedRational:
		one = order.AppendUint32(order.AppendUint32(nil, uint32(2*v)), 2)
	case typeFloat:
		one = order.AppendUint32(nil, math.Float32bits(float32(v)))
	case typeDouble:
		one = order.AppendUint64(nil, math.Float64bits(float64(v)))
	case typeLong8:
		one = order.AppendUint64(nil, uint64(v))
	case typeASCII:
		one = []byte{'0' + byte(v)}
	default:
		one = []byte{byte(v)}
	}
	return bytes.Repeat(one, n)
}

func oriented(header string, kind uint16, v, n int) *tiff {
	t := &tiff{header: header}
	t.entries = []entry{t.orientation(kind, v, n)}
	return t
}

func (t *tiff) orientation(kind uint16, v, n int) entry {
	return entry{tag: orientationTag, kind: kind, count: uint32(n), value: number(t.order(), kind, v, n)}
}

const intel, motorola = "II*\x00", "MM\x00*"

// Corpus is files by name.
type Corpus struct {
	// Names in the order in which the files were made.
	Names []string
	Files map[string][]byte

	base map[string][]byte
}

func (s *Corpus) add(name string, file []byte) {
	if _, twice := s.Files[name]; twice {
		panic(name)
	}
	s.Names, s.Files[name] = append(s.Names, name), file
}

// New makes files from the rules of TIFF, EXIF, XMP and their places in the formats, each broken in turn, then some of which several are.
func New() *Corpus {
	s := &Corpus{Files: map[string][]byte{}, base: bases()}
	s.headers()
	s.types()
	s.directories()
	s.places()
	s.profiles()
	s.packets()
	s.both()
	s.drawn()
	return s
}

// Texts is a PNG that is turned by the XMP in each of n texts, which become 900 KiB each.
func Texts(n int) []byte {
	s := &Corpus{base: bases()}
	text := chunk("zTXt", packetName, "\x00\x00", deflated(packet(6)+strings.Repeat(" ", 900<<10)))
	return s.pngOf(strings.Repeat(text, n))
}

// bases are pictures of 24×16 pixels without metadata.
func bases() map[string][]byte {
	picture := image.NewNRGBA(image.Rect(0, 0, 24, 16))
	for y := range 16 {
		for x := range 24 {
			picture.SetNRGBA(x, y, color.NRGBA{uint8(9 * x), uint8(15 * y), uint8(x * y), 255})
		}
	}
	var j, p bytes.Buffer
	if err := jpeg.Encode(&j, picture, nil); err != nil {
		panic(err)
	}
	if err := png.Encode(&p, picture); err != nil {
		panic(err)
	}
	w, err := hex.DecodeString(webpBits)
	if err != nil {
		panic(err)
	}
	return map[string][]byte{"jpeg": j.Bytes(), "png": p.Bytes(), "webp": w}
}

func segment(marker byte, parts ...string) string {
	data := strings.Join(parts, "")
	return string([]byte{0xff, marker, byte((len(data) + 2) >> 8), byte(len(data) + 2)}) + data
}

func chunk(name string, parts ...string) string {
	data := name + strings.Join(parts, "")
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)-4))
	return string(binary.BigEndian.AppendUint32(append(b, data...), crc32.ChecksumIEEE([]byte(data))))
}

func piece(name string, data []byte) string {
	s := name + string(binary.LittleEndian.AppendUint32(nil, uint32(len(data)))) + string(data)
	return s + strings.Repeat("\x00", len(s)&1)
}

// jpegOf is a JPEG with segments behind its first marker.
func (s *Corpus) jpegOf(segments ...string) []byte {
	b := s.base["jpeg"]
	return slices.Concat(b[:2], []byte(strings.Join(segments, "")), b[2:])
}

// pngOf is a PNG with chunks behind its header, and some behind its data.
func (s *Corpus) pngOf(before string, behind ...string) []byte {
	b := s.base["png"]
	return slices.Concat(b[:33], []byte(before), b[33:len(b)-12], []byte(strings.Join(behind, "")), b[len(b)-12:])
}

// webpOf is a WebP with flags in its header, and chunks behind its picture.
func (s *Corpus) webpOf(flags byte, chunks ...string) []byte {
	body := "WEBP" + piece("VP8X", []byte{flags, 0, 0, 0, 23, 0, 0, 15, 0, 0}) + string(s.base["webp"]) + strings.Join(chunks, "")
	return []byte(piece("RIFF", []byte(body)))
}

// everywhere adds a file of each format with that EXIF data.
func (s *Corpus) everywhere(name string, data []byte) {
	s.add(name+".jpg", s.jpegOf(segment(0xe1, "Exif\x00\x00", string(data))))
	s.add(name+"-dense.jpg", s.jpegOf(segment(0xe0, "JFIF\x00\x01\x01\x01\x00\x48\x00\x48\x00\x00"), segment(0xe1, "Exif\x00\x00", string(data))))
	s.add(name+".png", s.pngOf(chunk("eXIf", string(data))))
	s.add(name+".webp", s.webpOf(8, piece("EXIF", data)))
}

func (s *Corpus) headers() {
	whole := oriented(intel, typeShort, 6, 1).bytes()
	for i, header := range []string{intel, motorola, "MM*\x00", "II\x00*", "MM\x00+", "II+\x00", "II\x00+", "MM+\x00", "IM*\x00", "ii*\x00", "\x00\x00\x00\x00", "II*", "<xml"} {
		s.everywhere(fmt.Sprintf("header-%d", i), oriented(header, typeShort, 6, 1).bytes())
	}
	for n := range 12 {
		s.everywhere(fmt.Sprintf("cut-%02d", n), whole[:n])
	}
	for n := 1; n <= 3; n++ {
		s.everywhere(fmt.Sprintf("prefixed-%d", n), append(bytes.Repeat(exifMark, n), whole...))
	}
	s.add("prefixed-0.jpg", s.jpegOf(segment(0xe1, "Exif\x00", string(whole))))
	s.add("prefixed-4.jpg", s.jpegOf(segment(0xe1, "EXIF\x00\x00", string(whole))))
}

func (s *Corpus) types() {
	for kind := range uint16(20) {
		for i, header := range []string{intel, motorola} {
			for _, v := range []int{1, 6} {
				s.add(fmt.Sprintf("type-%02d-%d-%d.png", kind, i, v), s.pngOf(chunk("eXIf", string(oriented(header, kind, v, 1).bytes()))))
			}
		}
		for _, n := range []int{0, 2, 5} {
			s.add(fmt.Sprintf("count-%02d-%d.jpg", kind, n), s.jpegOf(segment(0xe1, "Exif\x00\x00", string(oriented(motorola, kind, 3, n).bytes()))))
		}
	}
	for v := range 12 {
		s.everywhere(fmt.Sprintf("value-%02d", v), oriented(intel, typeShort, v, 1).bytes())
	}
	for i, v := range [][]byte{
		{6, 0, 0, 0, 1, 0, 0, 0}, {6, 0, 0, 0, 0, 0, 0, 0}, {13, 0, 0, 0, 2, 0, 0, 0}, {0xfa, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		{6, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 0, 6, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0}, {0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	} {
		for _, kind := range []uint16{typeRational, typeSignedRational} {
			d := &tiff{header: intel, entries: []entry{{tag: orientationTag, kind: kind, count: 1, value: v}}}
			s.add(fmt.Sprintf("rational-%d-%d.png", kind, i), s.pngOf(chunk("eXIf", string(d.bytes()))))
		}
	}
	for i, v := range []float64{6, 6.5, -6, math.NaN(), math.Inf(1), 8, 5.999999999999999, 1e300} {
		single := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v)))
		double := binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
		d := &tiff{header: intel, entries: []entry{{tag: orientationTag, kind: typeFloat, count: 1, value: single}}}
		s.add(fmt.Sprintf("float-%d.webp", i), s.webpOf(8, piece("EXIF", d.bytes())))
		d.entries[0] = entry{tag: orientationTag, kind: typeDouble, count: 1, value: double}
		s.add(fmt.Sprintf("double-%d.webp", i), s.webpOf(8, piece("EXIF", d.bytes())))
	}
}

// directories puts entries in front of an orientation, and the directory elsewhere.
func (s *Corpus) directories() {
	const mk = 0x010f // Make
	short := (&tiff{header: intel}).orientation(typeShort, 6, 1)
	other := entry{tag: mk, kind: typeASCII, count: 3, value: []byte("abc")}
	for name, entries := range map[string][]entry{
		"behind":           {other, short},
		"before":           {short, other},
		"outside":          {{tag: mk, kind: typeASCII, count: 6, at: 5000}, short},
		"outside-by-one":   {{tag: mk, kind: typeASCII, count: 6, at: 33}, short},
		"outside-large":    {{tag: mk, kind: typeASCII, count: 5000, at: 0x7fffffff}, short},
		"larger-than-all":  {{tag: mk, kind: typeASCII, count: 5000, at: 8}, short},
		"larger-than-32":   {{tag: mk, kind: typeDouble, count: 0xffffffff, at: 8}, short},
		"just-all":         {{tag: mk, kind: typeASCII, count: 38, at: 0x1}, short},
		"in-header":        {{tag: mk, kind: typeASCII, count: 8, at: 1}, short},
		"twice-all":        {{tag: mk, kind: typeASCII, count: 30, at: 8}, {tag: mk + 1, kind: typeASCII, count: 30, at: 8}, short},
		"unknown-type":     {{tag: mk, kind: 77, count: 5000, at: 5000}, short},
		"type-14":          {{tag: mk, kind: 14, count: 1}, short},
		"type-17":          {{tag: mk, kind: 17, count: 1}, short},
		"no-values":        {{tag: mk, kind: typeASCII, count: 0}, short},
		"two":              {short, {tag: orientationTag, kind: typeShort, count: 1, value: []byte{3, 0}}},
		"two-first-empty":  {{tag: orientationTag, kind: typeShort, count: 0}, short},
		"two-first-text":   {{tag: orientationTag, kind: typeASCII, count: 1, value: []byte("3")}, short},
		"two-first-odd":    {{tag: orientationTag, kind: 99, count: 1, value: []byte{3, 0}}, short},
		"two-first-large":  {{tag: orientationTag, kind: typeShort, count: 5000, at: 8}, short},
		"two-first-away":   {{tag: orientationTag, kind: typeShort, count: 5, at: 5000}, short},
		"out-of-line":      {{tag: orientationTag, kind: typeShort, count: 4, value: []byte{6, 0, 1, 0, 1, 0, 1, 0}}},
		"itself":           {{tag: orientationTag, kind: typeShort, count: 4, at: 8}},
		"width-in-front":   {{tag: 0x0100, kind: typeASCII, count: 2, value: []byte("x")}, short},
		"long-in-short":    {{tag: 0x0128, kind: typeLong, count: 1, value: []byte{0, 0, 1, 0}}, short},
		"exif-negative":    {{tag: 0x8769, kind: typeSignedLong, count: 1, value: []byte{0xff, 0xff, 0xff, 0xff}}, short},
		"exif-outside":     {{tag: 0x8769, kind: typeLong, count: 1, value: []byte{0, 0, 1, 0}}, short},
		"exif-to-itself":   {{tag: 0x8769, kind: typeLong, count: 1, value: []byte{8, 0, 0, 0}}, short},
		"rational-of-zero": {{tag: 0x011a, kind: typeRational, count: 1, value: []byte{72, 0, 0, 0, 0, 0, 0, 0}}, short},
	} {
		s.everywhere("entries-"+name, (&tiff{header: intel, entries: entries}).bytes())
	}
	in := func(change func(*tiff)) []byte {
		d := &tiff{header: intel, entries: []entry{other, short}}
		change(d)
		return d.bytes()
	}
	s.everywhere("first-0", in(func(d *tiff) { d.first = 1 << 31 }))
	s.everywhere("first-beyond", in(func(d *tiff) { d.first = 100 }))
	s.everywhere("first-last-byte", in(func(d *tiff) { d.first = 37 }))
	s.everywhere("first-in-header", in(func(d *tiff) { d.first = 2 }))
	s.everywhere("claimed", in(func(d *tiff) { d.claimed = 1000 }))
	s.everywhere("none-claimed", in(func(d *tiff) { d.claimed = -2 }))
	s.everywhere("one-claimed", in(func(d *tiff) { d.claimed = -1 }))
	s.everywhere("no-next", in(func(d *tiff) { d.cut = 4 }))
	s.everywhere("cut-in-entry", in(func(d *tiff) { d.cut = 5 }))
	s.everywhere("in-second", in(func(d *tiff) { d.entries, d.next = d.entries[:1], d.entries[1:] }))
	s.everywhere("no-entries", in(func(d *tiff) { d.entries = nil }))
}

func (s *Corpus) places() {
	six, three := string(oriented(intel, typeShort, 6, 1).bytes()), string(oriented(motorola, typeShort, 3, 1).bytes())
	mark := string(exifMark)
	s.add("place-two.jpg", s.jpegOf(segment(0xe1, mark, six), segment(0xe1, mark, three)))
	s.add("place-split.jpg", s.jpegOf(segment(0xe1, mark, six[:12]), segment(0xe1, mark, six[12:])))
	s.add("place-split-empty.jpg", s.jpegOf(segment(0xe1, mark), segment(0xe1, mark, six)))
	s.add("place-app2.jpg", s.jpegOf(segment(0xe2, mark, six)))
	s.add("place-comment.jpg", s.jpegOf(segment(0xfe, "a comment"), segment(0xe1, mark, six)))
	s.add("place-behind-jfif.jpg", s.jpegOf(segment(0xe0, "JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"), segment(0xe1, mark, six)))
	s.add("place-fill.jpg", s.jpegOf("\xff\xff\xff"+segment(0xe1, mark, six)))
	s.add("place-only-mark.jpg", s.jpegOf(segment(0xe1, mark)))
	for unit := range 4 {
		head := fmt.Sprintf("JFIF\x00\x01\x01%c\x00\x48\x00\x48\x00\x00", unit)
		s.add(fmt.Sprintf("place-broken-unit-%d.jpg", unit), s.jpegOf(segment(0xe0, head), segment(0xe1, mark, "broken data")))
		s.add(fmt.Sprintf("place-broken-unit-%d-xmp.jpg", unit),
			s.jpegOf(segment(0xe0, head), segment(0xe1, mark, "broken data"), segment(0xe1, string(xmpMark), packet(8))))
	}
	s.add("place-broken-short-jfif.jpg", s.jpegOf(segment(0xe0, "JFIF\x00\x01\x01\x01\x00\x48\x00"), segment(0xe1, mark, "broken data")))
	s.add("place-broken-jfif-behind.jpg", s.jpegOf(segment(0xe1, mark, "broken data"), segment(0xe0, "JFIF\x00\x01\x01\x02\x00\x48\x00\x48\x00\x00")))

	s.add("place-behind.png", s.pngOf("", chunk("eXIf", six)))
	s.add("place-two.png", s.pngOf(chunk("eXIf", six), chunk("eXIf", three)))
	s.add("place-wrong-sum-behind.png", s.pngOf("", chunk("eXIf", six)[:len(six)+8]+"abcd"))
	s.add("place-behind-odd-name.png", s.pngOf("", chunk("q!!!", "abc"), chunk("eXIf", six)))
	s.add("place-behind-unknown.png", s.pngOf("", chunk("quux", "abc"), chunk("eXIf", six)))
	s.add("place-behind-end.png", append(s.pngOf(""), chunk("eXIf", six)...))
	s.add("place-behind-data.png", s.pngOf("", chunk("tEXt", "a\x00b"), chunk("IDAT", "abc"), chunk("eXIf", six)))
	s.add("place-empty.png", s.pngOf(chunk("eXIf")))
	frame := "\x00\x00\x00\x00\x00\x00\x00\x18\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01\x00\x00"
	later := "\x00\x00\x00\x01" + frame[4:]
	for n := range 3 {
		count := fmt.Sprintf("\x00\x00\x00%c\x00\x00\x00\x00", n+1)
		s.add(fmt.Sprintf("place-animated-%d.png", n), s.pngOf(chunk("acTL", count)+chunk("fcTL", frame), chunk("fcTL", later), chunk("eXIf", six)))
		s.add(fmt.Sprintf("place-default-%d.png", n), s.pngOf(chunk("acTL", count), chunk("fcTL", frame), chunk("eXIf", six)))
	}

	s.add("place-none.webp", s.webpOf(0, piece("EXIF", []byte(six))))
	s.add("place-empty.webp", s.webpOf(8, piece("EXIF", nil)))
	s.add("place-empty-first.webp", s.webpOf(8, piece("EXIF", nil), piece("EXIF", []byte(six))))
	s.add("place-two.webp", s.webpOf(8, piece("EXIF", []byte(three)), piece("EXIF", []byte(six))))
	s.add("place-small.webp", s.webpOf(8, piece("exif", []byte(six))))
	s.add("place-odd.webp", s.webpOf(12, piece("XMP ", []byte("odd")), piece("EXIF", []byte(six))))
	s.add("place-mark.webp", s.webpOf(8, piece("EXIF", []byte(mark+six))))
}

func deflated(text string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

func named(name, text string) map[string]string {
	packed := deflated(text)
	return map[string]string{
		"plain":            chunk("tEXt", name, "\x00", text),
		"plain-no-zero":    chunk("tEXt", name),
		"packed":           chunk("zTXt", name, "\x00\x00", packed),
		"packed-cut":       chunk("zTXt", name, "\x00\x00", packed[:len(packed)-6]),
		"packed-half":      chunk("zTXt", name, "\x00\x00", packed[:len(packed)/2]),
		"packed-sum":       chunk("zTXt", name, "\x00\x00", packed[:len(packed)-2], "ab"),
		"packed-wrong":     chunk("zTXt", name, "\x00\x00", "abcdefgh"),
		"packed-none":      chunk("zTXt", name, "\x00\x00"),
		"packed-tail":      chunk("zTXt", name, "\x00\x00", packed, "more"),
		"packed-no-method": chunk("zTXt", name, "\x00"),
		"international":    chunk("iTXt", name, "\x00\x00\x00en\x00name\x00", text),
		"i-packed":         chunk("iTXt", name, "\x00\x01\x00en\x00name\x00", packed),
		"i-packed-wrong":   chunk("iTXt", name, "\x00\x01\x00en\x00name\x00abcdefgh"),
		"i-method":         chunk("iTXt", name, "\x00\x01\x01en\x00name\x00", packed),
		"i-flag-2":         chunk("iTXt", name, "\x00\x02\x00\x00\x00", packed),
		"i-no-flag-method": chunk("iTXt", name, "\x00\x00\x09\x00\x00", text),
		"i-language":       chunk("iTXt", name, "\x00\x00\x00\xff\x00\x00", text),
		"i-not-utf8":       chunk("iTXt", name, "\x00\x00\x00\x00\x00", text, "\xff"),
		"i-one-zero":       chunk("iTXt", name, "\x00\x00\x00\x00", text),
		"i-short":          chunk("iTXt", name, "\x00\x00"),
		"i-packed-long":    chunk("iTXt", name, "\x00\x01\x00\x00\x00", deflated(text+strings.Repeat(" ", 2<<20))),
		"packed-long":      chunk("zTXt", name, "\x00\x00", deflated(text+strings.Repeat(" ", 2<<20))),
	}
}

func (s *Corpus) profiles() {
	data := append(slices.Clone(exifMark), oriented(intel, typeShort, 6, 1).bytes()...)
	digits := hex.EncodeToString(data)
	lined := strings.Join([]string{digits[:20], digits[20:40], digits[40:], ""}, "\n")
	profile := fmt.Sprintf("\nexif\n%8d\n%s", len(data), lined)
	for kind, c := range named(profileName, profile) {
		s.add("profile-"+kind+".png", s.pngOf("", c))
	}
	for name, text := range map[string]string{
		"empty": "", "two-lines": "\nexif", "no-digits": "\nexif\n 5\n", "odd": "\nexif\n 5\n" + digits[:len(digits)-1], "letter": "\nexif\n 5\n" + digits + "xy",
		"spaced": "\nexif\n 5\n" + strings.Join(strings.SplitAfter(digits, "0000"), " "), "within": "\nexif\n 5\n4 5786966", "upper": "\nexif\n5\n" + strings.ToUpper(digits),
		"tabs": "\nexif\n 5\n\t\v\f\r " + digits, "no-first": "exif\n 5\n" + digits, "broken": "\nexif\n 5\n616263", "latin": "\nexif\n 5\n" + digits + "\xe9",
		"across-lines": "\nexif\n 5\n" + digits[:21] + "\n" + digits[21:], "nul": "\nexif\n 5\n" + digits + "\x00",
	} {
		s.add("digits-"+name+".png", s.pngOf(chunk("zTXt", profileName, "\x00\x00", deflated(text))))
	}
	for kind, c := range named(exifName, string(data)) {
		s.add("named-"+kind+".png", s.pngOf(c))
	}
	s.add("profile-and-chunk.png", s.pngOf(chunk("tEXt", profileName, "\x00\nexif\n5\n616263"), chunk("eXIf", string(data))))
	s.add("profile-other.png", s.pngOf(chunk("tEXt", "Raw profile type APP1\x00", profile)))
	s.add("named-twice.png", s.pngOf(chunk("zTXt", exifName, "\x00\x00", deflated("abc")), chunk("eXIf", string(data))))
	s.add("named-behind.png", s.pngOf(chunk("eXIf", string(data)), chunk("zTXt", exifName, "\x00\x00", deflated("abc"))))
}

func packet(v int) string {
	return fmt.Sprintf(`<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Make="Ä" tiff:Orientation="%d"/></x:xmpmeta>`, v)
}

func (s *Corpus) packets() {
	for kind, c := range named(packetName, packet(6)) {
		s.add("packet-"+kind+".png", s.pngOf("", c))
	}
	for kind, c := range named(xmpName, packet(6)) {
		s.add("xmp-"+kind+".png", s.pngOf(c))
	}
	for name, text := range map[string]string{
		"element": "<tiff:Orientation>6</tiff:Orientation>", "single": "tiff:Orientation='6'", "space": `tiff:Orientation ="6"`, "two-digits": `tiff:Orientation="63"`,
		"second": `tiff:Orientation="x" tiff:Orientation="8"`, "first": `tiff:Orientation="2" tiff:Orientation="8"`, "nine": `tiff:Orientation="9"`, "zero": `tiff:Orientation="0" tiff:Orientation="8"`,
		"element-space": "<tiff:Orientation> 6</tiff:Orientation>", "closed": "</tiff:Orientation>6", "case": `TIFF:Orientation="6"`, "empty": "", "end": `tiff:Orientation="`, "one": `tiff:Orientation="1"`,
		"exif": `exif:Orientation="6"`, "overlap": `tiff:Orientationtiff:Orientation="6"`, "wide": "t\x00i\x00f\x00f\x00:\x00O\x00r\x00i\x00e\x00n\x00t\x00a\x00t\x00i\x00o\x00n\x00=\x00\"\x006\x00",
	} {
		s.add("text-"+name+".jpg", s.jpegOf(segment(0xe1, string(xmpMark), text)))
		s.add("text-"+name+".webp", s.webpOf(4, piece("XMP ", []byte(text))))
		s.add("text-"+name+".png", s.pngOf(chunk("iTXt", packetName, "\x00\x00\x00\x00\x00", text)))
	}
	s.add("packet-two.jpg", s.jpegOf(segment(0xe1, string(xmpMark), packet(6)), segment(0xe1, string(xmpMark), packet(3))))
	s.add("packet-extension.jpg", s.jpegOf(segment(0xe1, "http://ns.adobe.com/xmp/extension/\x00", packet(6))))
	s.add("packet-no-zero.jpg", s.jpegOf(segment(0xe1, string(xmpMark[:len(xmpMark)-1]), packet(6))))
	s.add("packet-unannounced.webp", s.webpOf(0, piece("XMP ", []byte(packet(6)))))
	s.add("packet-two.webp", s.webpOf(4, piece("XMP ", []byte(packet(6))), piece("XMP ", []byte(packet(3)))))
	s.add("packet-text-empty.png", s.pngOf(chunk("iTXt", packetName, "\x00\x00\x00\x00\x00", packet(6), "\xff")+chunk("tEXt", packetName, "\x00")))
	s.add("packet-and-xmp.png", s.pngOf(chunk("tEXt", xmpName, "\x00", packet(3))+chunk("tEXt", packetName, "\x00", packet(6))))
	s.add("packet-none-and-xmp.png", s.pngOf(chunk("tEXt", xmpName, "\x00", packet(3))+chunk("tEXt", packetName, "\x00no")))
}

// both adds each state of the EXIF data with each of the XMP.
func (s *Corpus) both() {
	directories := map[string][]byte{
		"absent": nil, "empty": {}, "broken": []byte("broken data"), "short": []byte("II*\x00ab"), "untagged": (&tiff{header: intel}).bytes(),
		"away": (&tiff{header: intel, entries: []entry{{tag: 0x010f, kind: typeASCII, count: 9, at: 99}, {tag: orientationTag, kind: typeShort, count: 1, value: []byte{6, 0}}}}).bytes(),
	}
	for _, v := range []int{0, 1, 6, 9} {
		directories[fmt.Sprint(v)] = oriented(motorola, typeShort, v, 1).bytes()
	}
	for name, d := range directories {
		for _, v := range []int{0, 1, 3, 8, 9} {
			name := fmt.Sprintf("both-%s-%d", name, v)
			xmp := segment(0xe1, string(xmpMark), packet(v))
			text := chunk("iTXt", packetName, "\x00\x00\x00\x00\x00", packet(v))
			if d == nil {
				s.add(name+".jpg", s.jpegOf(xmp))
				s.add(name+".png", s.pngOf(text))
				s.add(name+".webp", s.webpOf(12, piece("XMP ", []byte(packet(v)))))
				continue
			}
			exif := segment(0xe1, string(exifMark), string(d))
			s.add(name+".jpg", s.jpegOf(exif, xmp))
			s.add(name+"-dense.jpg", s.jpegOf(xmp, segment(0xe0, "JFIF\x00\x01\x01\x02\x00\x48\x00\x48\x00\x00"), exif))
			s.add(name+".png", s.pngOf(text, chunk("eXIf", string(d))))
			s.add(name+".webp", s.webpOf(12, piece("EXIF", d), piece("XMP ", []byte(packet(v)))))
		}
	}
}

// drawn adds files of which several parts are drawn.
func (s *Corpus) drawn() {
	r := rand.New(rand.NewPCG(1, 2))
	headers := []string{intel, motorola, intel, motorola, "MM*\x00", "II\x00*", "MM\x00+", "xx*\x00"}
	for i := range 400 {
		d := &tiff{header: headers[r.IntN(len(headers))]}
		for range 1 + r.IntN(5) {
			kind := uint16(r.IntN(18))
			e := d.orientation(kind, 1+r.IntN(8), r.IntN(4))
			if r.IntN(2) == 0 {
				e.tag = 0xc000 + uint16(r.IntN(4)) // of no meaning to Pillow
			}
			if r.IntN(6) == 0 {
				e.at, e.value = uint32(r.IntN(200)), nil
			}
			if r.IntN(8) == 0 {
				e.count = uint32(r.IntN(100))
			}
			d.entries = append(d.entries, e)
		}
		d.claimed, d.cut = max(0, r.IntN(8)-6), max(0, r.IntN(40)-30)
		switch xmp := packet(r.IntN(10)); i % 3 {
		case 0:
			s.add(fmt.Sprintf("drawn-%03d.jpg", i), s.jpegOf(segment(0xe1, string(exifMark), string(d.bytes())), segment(0xe1, string(xmpMark), xmp)))
		case 1:
			s.add(fmt.Sprintf("drawn-%03d.png", i), s.pngOf(chunk("eXIf", string(d.bytes())), chunk("zTXt", packetName, "\x00\x00", deflated(xmp))))
		default:
			s.add(fmt.Sprintf("drawn-%03d.webp", i), s.webpOf(12, piece("EXIF", d.bytes()), piece("XMP ", []byte(xmp))))
		}
	}
}

// webpBits is the chunk of the picture of bases, as WebP without loss.
const webpBits = "5650384c460000002f17c00300b93244f43f060adab661ca1ff4d91f84fa47ff2780a81f0e236d23d5c1fb777cf0e1e024286e1b49cd2d" +
	"ef1e7ff9620212d707c1f517904668fc0d85591306af0a"
