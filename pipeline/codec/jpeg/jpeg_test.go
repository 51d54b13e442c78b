package jpeg

import (
	"bytes"
	"errors"
	"image"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// forLevels runs a test with a decoder of each level.
func forLevels(t *testing.T, f func(t *testing.T, d *Decoder)) {
	for _, l := range kernel.Levels() {
		t.Run(l, func(t *testing.T) { f(t, NewDecoder(l)) })
	}
}

// collector keeps the rows of a region and checks the contract of pixel.Sink.
type collector struct {
	width int
	pix   []byte
	calls int
	most  int
}

func (c *collector) Rows(pix []byte, stride, n int) {
	if n < 1 || len(pix) < (n-1)*stride+c.width+pixel.Pad {
		panic("rows without their padding")
	}
	for i := range n {
		c.pix = append(c.pix, pix[i*stride:][:c.width]...)
	}
	c.calls++
	c.most = max(c.most, n)
}

// decodeRegion gives the pixels of a region of a parsed file.
func decodeRegion(d *Decoder, r image.Rectangle) ([]byte, error) {
	c := collector{width: 3 * r.Dx()}
	err := d.Decode(r, &c)
	return c.pix, err
}

func decodeAll(d *Decoder, b []byte) (w, h int, pix []byte, err error) {
	if w, h, err = d.Parse(b, Limits{}); err != nil {
		return 0, 0, nil, err
	}
	pix, err = decodeRegion(d, image.Rect(0, 0, w, h))
	return w, h, pix, err
}

// crop is a region of a whole picture.
func crop(pix []byte, w int, r image.Rectangle) (out []byte) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		out = append(out, pix[3*(y*w+r.Min.X):3*(y*w+r.Max.X)]...)
	}
	return out
}

func randomRegion(r *rand.Rand, w, h int) image.Rectangle {
	x, y := r.IntN(w), r.IntN(h)
	return image.Rect(x, y, x+1+r.IntN(w-x), y+1+r.IntN(h-y))
}

// allLevels has a decoder of each level.
func allLevels() (d []*Decoder) {
	for _, l := range kernel.Levels() {
		d = append(d, NewDecoder(l))
	}
	return d
}

// check compares decoders with the oracle: the verdict, all pixels, and some regions.
func check(t testing.TB, decoders []*Decoder, b []byte, r *rand.Rand, regions int) {
	t.Helper()
	w, h, want, refused := oracleDecode(b)
	if errors.Is(refused, errLarge) {
		return
	}
	var part []image.Rectangle
	if refused == nil {
		part = append(part, image.Rect(0, 0, w, h))
		for range regions {
			part = append(part, randomRegion(r, w, h))
		}
	}
	for _, d := range decoders {
		gotW, gotH, err := d.Parse(b, Limits{})
		if (err == nil) != (refused == nil) || gotW != w || gotH != h {
			t.Fatalf("%s: %dx%d, %v; the oracle says %dx%d, %v", d.output.kernels.Level, gotW, gotH, err, w, h, refused)
		}
		for _, region := range part {
			got, err := decodeRegion(d, region)
			if want := crop(want, w, region); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: region %v of %dx%d differs from byte %d on (%v)", d.output.kernels.Level, region, w, h, firstDifference(got, want), err)
			}
		}
	}
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// Every sampling, every size from 1x1 to 17x17, with and without restart markers, and random regions of each.
func TestSmallPictures(t *testing.T) {
	decoders := allLevels()
	for _, name := range inOrder(samplings) {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1))
			m := jpegtest.Photograph(4, 4, 17, 17)
			for size := range 17 * 17 {
				if leftOut(size / 4) {
					continue
				}
				small := pixel.Image{Pix: m.Pix, W: 1 + size%17, H: 1 + size/17, Stride: m.Stride}
				o := jpegtest.Options{Sampling: samplings[name], Restart: size % 4, Quality: 50 + size%50}
				check(t, decoders, jpegtest.Encode(&small, o), r, 3)
				if size%4 != 1 {
					continue
				}
				script := jpegtest.Script(len(o.Sampling))
				o.Progressive = script[:1+size%len(script)]
				check(t, decoders, jpegtest.Encode(&small, o), r, 2)
			}
		})
	}
}

// A progressive file has the pixels of the sequential one with the same coefficients, whatever the scans, in every region.
func TestProgressiveIsSequential(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	forLevels(t, func(t *testing.T, d *Decoder) {
		for i, name := range inOrder(bandScripts) {
			m := jpegtest.Photograph(uint64(i), i, 150+r.IntN(40), 90+r.IntN(40))
			o := jpegtest.Options{Sampling: samplings[inOrder(samplings)[i]], Quality: 80}
			_, _, want, err := decodeAll(d, jpegtest.Encode(m, o))
			if err != nil {
				t.Fatal(err)
			}
			o.Progressive, o.Restart = bandScripts[name], i*3
			if _, _, err := d.Parse(jpegtest.Encode(m, o), Limits{}); err != nil {
				t.Fatal(err)
			}
			for range 20 {
				region := randomRegion(r, m.W, m.H)
				if got, err := decodeRegion(d, region); err != nil || !bytes.Equal(got, crop(want, m.W, region)) {
					t.Errorf("%s: region %v differs (%v)", name, region, err)
				}
			}
		}
	})
}

// The corpus in regions: whatever is wrong with a file, a part of it is that part of the whole, which TestPillow compares.
func TestCorpusInRegions(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	corpus := newCorpus()
	forLevels(t, func(t *testing.T, d *Decoder) {
		for i, s := range corpus {
			if leftOut(i) {
				continue
			}
			w, h, whole, err := decodeAll(d, s.data)
			if err != nil {
				continue
			}
			region := randomRegion(r, w, h)
			if got, err := decodeRegion(d, region); err != nil || !bytes.Equal(got, crop(whole, w, region)) {
				t.Errorf("%s: region %v differs (%v)", s.name, region, err)
			}
		}
	})
}

// leftOut tells of case i of many alike whether -short leaves it out, with which the race detector runs: it takes eight times as long.
func leftOut(i int) bool { return testing.Short() && i%5 != 0 }

// Pictures of many MCUs, in one scan and in several, with many regions.
func TestRegions(t *testing.T) {
	decoders := allLevels()
	r := rand.New(rand.NewPCG(2, 2))
	for i, name := range inOrder(samplings) {
		m := jpegtest.Photograph(uint64(i), i, 150+r.IntN(40), 90+r.IntN(40))
		for _, restart := range []int{0, 1 + r.IntN(20)} {
			check(t, decoders, jpegtest.Encode(m, jpegtest.Options{Sampling: samplings[name], Restart: restart}), r, 30)
			if len(samplings[name]) == 3 {
				o := jpegtest.Options{Sampling: samplings[name], Restart: restart, Scans: [][]int{{0}, {1, 2}}}
				check(t, decoders, jpegtest.Encode(m, o), r, 10)
			}
		}
	}
}

// Narrow regions at the sides of a picture need no memory that wide ones have left.
func TestNarrowRegions(t *testing.T) {
	for i, name := range inOrder(samplings) {
		b := jpegtest.Encode(jpegtest.Photograph(uint64(i), i, 75, 40), jpegtest.Options{Sampling: samplings[name]})
		w, h, want, err := oracleDecode(b)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n < 40; n += 3 {
			for _, region := range []image.Rectangle{image.Rect(0, 0, n, h), image.Rect(w-n, 0, w, h), image.Rect(w/2, n, w/2+1, h)} {
				for _, d := range allLevels() {
					if _, _, err := d.Parse(b, Limits{}); err != nil {
						t.Fatal(err)
					}
					if got, err := decodeRegion(d, region); err != nil || !bytes.Equal(got, crop(want, w, region)) {
						t.Fatalf("%s of %s: region %v differs (%v)", d.output.kernels.Level, name, region, err)
					}
				}
			}
		}
	}
}

// photographs are the names of real pictures, if there are any on this machine.
func photographs(t testing.TB) []string {
	dir := os.Getenv("FEEDWATER_PHOTOS")
	if dir == "" {
		dir = "../../../../shared/data/photos"
	}
	names, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// pictures are the photographs, or generated ones where there are none.
func pictures(t testing.TB, most int) (b [][]byte) {
	names := photographs(t)
	for i := range names {
		if len(b) == most {
			return b
		}
		data, err := os.ReadFile(names[i*len(names)/max(most, 1)%len(names)])
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, data)
	}
	for i := 0; len(b) < most; i++ {
		b = append(b, jpegtest.File(i%5, i, 3))
	}
	return b
}

func TestPictures(t *testing.T) {
	decoders := allLevels()
	r := rand.New(rand.NewPCG(3, 3))
	for _, b := range pictures(t, 16) {
		check(t, decoders, b, r, 5)
	}
}

// Damaged data: the same verdict and the same pixels as the oracle, for the picture and for regions of it.
func TestDamage(t *testing.T) {
	decoders := allLevels()
	r := rand.New(rand.NewPCG(4, 4))
	for i, name := range inOrder(samplings) {
		o := jpegtest.Options{Sampling: samplings[name], Restart: []int{0, 1, 4, 11}[i%4], Quality: 40 + i}
		if i%5 == 4 && len(o.Sampling) == 3 {
			o.Scans = [][]int{{0, 1}, {2}}
		}
		if i%3 == 1 {
			o.Progressive = jpegtest.Script(len(o.Sampling))
		}
		b := jpegtest.Encode(jpegtest.Photograph(uint64(i), i, 40+r.IntN(30), 30+r.IntN(30)), o)
		for range 150 {
			check(t, decoders, damaged(r, b), r, 2)
		}
	}
}

// damaged is b with some bits flipped, bytes changed to markers, parts removed or doubled, or cut.
func damaged(r *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	header := 2
	if r.IntN(8) > 0 {
		header = find(b, 0xda, 0).start + 8
	}
	for range 1 + r.IntN(4) {
		at := header + r.IntN(len(b)-header)
		switch r.IntN(10) {
		case 0:
			b = b[:at]
		case 1:
			b = append(b[:at], eoi...)
		case 2:
			b = append(b[:at], b[min(len(b), at+1+r.IntN(9)):]...)
		case 3:
			b = insert(b, at, b[at:min(len(b), at+r.IntN(30))])
		case 4:
			b = insert(b, at, []byte{0xff, byte(0xd0 + r.IntN(8))})
		case 5:
			b = insert(b, at, []byte{0xff, byte(r.Uint32())})
		default:
			b[at] ^= 1 << r.IntN(8)
		}
		if len(b) <= header {
			return b
		}
	}
	return b
}

// A file is refused or accepted by its markers alone, whatever its data: no region of an accepted file fails.
func TestParseDecidesAll(t *testing.T) {
	cases := []struct {
		name string
		want error
		file func(b []byte) []byte
	}{
		{"whole", nil, func(b []byte) []byte { return b }},
		{"text", ErrNotJPEG, func([]byte) []byte { return []byte("hello, world") }},
		{"empty", ErrNotJPEG, func([]byte) []byte { return nil }},
		{"header alone", ErrTruncated, func(b []byte) []byte { return b[:find(b, 0xda, 0).start] }},
		{"half the data", ErrTruncated, func(b []byte) []byte { return b[:len(b)/2] }},
		{"no EOI", ErrTruncated, func(b []byte) []byte { return b[:len(b)-2] }},
		{"half the data and EOI", nil, func(b []byte) []byte { return append(bytes.Clone(b[:len(b)/2]), eoi...) }},
		{"arithmetic", ErrUnsupported, func(b []byte) []byte { return overwrite(b, find(b, 0xc0, 0).start+1, 0xc9) }},
		{"progressive arithmetic", ErrUnsupported, func(b []byte) []byte { return overwrite(b, find(b, 0xc0, 0).start+1, 0xca) }},
		{"lossless", ErrUnsupported, func(b []byte) []byte { return overwrite(b, find(b, 0xc0, 0).start+1, 0xc3) }},
		{"baseline called progressive", ErrBroken, func(b []byte) []byte { return overwrite(b, find(b, 0xc0, 0).start+1, 0xc2) }},
		{"12 bits", ErrUnsupported, func(b []byte) []byte { return overwrite(b, find(b, 0xc0, 0).start+4, 12) }},
		{"scan behind the last row", ErrBroken, func(b []byte) []byte {
			s := find(b, 0xda, 0)
			return insert(b, s.end, b[s.start:s.end])
		}},
		{"SOI in the data", ErrBroken, func(b []byte) []byte { return insert(b, len(b)-9, []byte{0xff, 0xd8}) }},
	}
	b := jpegtest.Encode(jpegtest.Photograph(1, 1, 100, 80), jpegtest.Options{})
	forLevels(t, func(t *testing.T, d *Decoder) {
		for _, c := range cases {
			w, h, err := d.Parse(c.file(b), Limits{})
			if !errors.Is(err, c.want) || err == nil && (w != 100 || h != 80) {
				t.Errorf("%s: %dx%d, %v; want %v", c.name, w, h, err, c.want)
			}
			if err := d.Decode(image.Rect(0, 0, 1, 1), &collector{width: 3}); (err == nil) != (c.want == nil) {
				t.Errorf("%s: decode says %v", c.name, err)
			}
		}
	})
}

func TestWrongRegions(t *testing.T) {
	d := NewDecoder(kernel.Scalar)
	if err := d.Decode(image.Rect(0, 0, 1, 1), &collector{}); err == nil {
		t.Error("decoded without a file")
	}
	if _, _, err := d.Parse(jpegtest.Encode(jpegtest.Photograph(1, 1, 20, 10), jpegtest.Options{}), Limits{}); err != nil {
		t.Fatal(err)
	}
	for _, r := range []image.Rectangle{{}, image.Rect(0, 0, 21, 10), image.Rect(-1, 0, 3, 3), image.Rect(5, 5, 5, 9), image.Rect(0, 9, 2, 11)} {
		if err := d.Decode(r, &collector{width: 3 * r.Dx()}); err == nil {
			t.Errorf("decoded region %v of 20x10", r)
		}
	}
}

// Rows come a few at a time.
func TestRowsAreFew(t *testing.T) {
	d := NewDecoder(kernel.Scalar)
	m := jpegtest.Photograph(1, 1, 64, 200)
	if _, _, err := d.Parse(jpegtest.Encode(m, jpegtest.Options{Sampling: jpegtest.S420}), Limits{}); err != nil {
		t.Fatal(err)
	}
	c := collector{width: 3 * 64}
	if err := d.Decode(image.Rect(0, 0, 64, 200), &c); err != nil {
		t.Fatal(err)
	}
	if c.most > rowsPerCall || c.calls > 200/rowsPerCall+26 {
		t.Errorf("%d calls of at most %d rows", c.calls, c.most)
	}
}

// Once a decoder has seen the kinds of files it gets, it allocates nothing.
func TestNoAllocation(t *testing.T) {
	files := pictures(t, 12)
	m := jpegtest.Photograph(1, 1, 90, 70)
	files = append(files, jpegtest.Encode(m, jpegtest.Options{Sampling: jpegtest.S410, Restart: 3}),
		jpegtest.Encode(m, jpegtest.Options{Scans: [][]int{{0}, {1}, {2}}}), jpegtest.Encode(m, jpegtest.Options{Progressive: jpegtest.Script(3)}),
		jpegtest.Encode(m, jpegtest.Options{Progressive: jpegtest.Script(3)[:5], Sampling: jpegtest.S420}),
		jpegtest.Encode(m, jpegtest.Options{Sampling: jpegtest.CMYK, Progressive: jpegtest.Script(4)}), jpegtest.Encode(m, jpegtest.Options{Sampling: jpegtest.S440}))
	forLevels(t, func(t *testing.T, d *Decoder) {
		var s pixel.Sink = nowhere{}
		if n := testing.AllocsPerRun(3, func() {
			for _, b := range files {
				w, h, err := d.Parse(b, Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if err := d.Decode(image.Rect(w/5, h/5, w, h), s); err != nil {
					t.Fatal(err)
				}
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

type nowhere struct{}

func (nowhere) Rows([]byte, int, int) {}

// What a file claims costs nothing to parse: memory depends on the bytes that are there.
func TestClaimsCostNothing(t *testing.T) {
	b := jpegtest.Encode(jpegtest.Photograph(1, 1, 16, 16), jpegtest.Options{Restart: 1})
	b = overwrite(b, find(b, 0xc0, 0).start+5, 0xff, 0xdc, 0xff, 0xdc) // 65500 x 65500
	b = overwrite(b, find(b, 0xdd, 0).start+4, 0, 1)
	d := NewDecoder(kernel.Levels()[0])
	parse := func() {
		if w, h, err := d.Parse(b, Limits{}); w != 65500 || h != 65500 || err != nil {
			t.Fatal(w, h, err)
		}
	}
	parse()
	if n := testing.AllocsPerRun(10, parse); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := cap(d.coder.segment.data); n > 2*(len(b)+segmentPad) {
		t.Errorf("%d bytes held for a file of %d", n, len(b))
	}
	if err := d.Decode(image.Rect(40000, 3, 40010, 9), nowhere{}); err != nil { // a small region is cheap too
		t.Error(err)
	}
	if n := cap(d.output.rows) + cap(d.output.planes[0].pix); n > 1<<16 {
		t.Errorf("%d bytes held for a region of 10x6", n)
	}
}
