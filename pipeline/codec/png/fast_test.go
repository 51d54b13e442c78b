package png

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// pixels keeps all rows.
type pixels struct {
	width int
	pix   []byte
}

func (p *pixels) Rows(pix []byte, stride, n int) {
	for y := range n {
		p.pix = append(p.pix, pix[y*stride:][:3*p.width]...)
	}
}

// decodeSlowly is decode without the fast path.
func (d *Decoder) decodeSlowly(r image.Rectangle, sink pixel.Sink) error {
	d.data.open(&d.reader)
	d.out.begin(&d.reader, r, sink)
	after, err := d.out.run(&d.data)
	if err != nil {
		return err
	}
	return d.reader.rest(after)
}

// drawing is a picture of a kind of Go's encoder: smooth, with noise and flat parts, so that all filters are used.
func drawing(r *rand.Rand, kind, w, h int) image.Image {
	b := image.Rect(0, 0, w, h)
	m := []interface {
		image.Image
		Set(x, y int, c color.Color)
	}{
		image.NewRGBA(b), image.NewNRGBA(b), image.NewGray(b), image.NewGray16(b), image.NewNRGBA64(b),
		image.NewPaletted(b, color.Palette{color.Black, color.White, color.RGBA{200, 30, 40, 255}}),
	}[kind]
	for i := range w * h {
		x, y := i%w, i/w
		c := color.NRGBA{byte(x + y/2), byte(2 * y), byte(x * y / 40), 255}
		if x/16%3 == 1 {
			c.R += byte(r.IntN(9))
			c.A -= byte(r.IntN(2) * kind)
		}
		m.Set(x, y, c)
	}
	return m
}

// kinds is how many there are of drawing.
const kinds = 6

func encodeDrawing(t testing.TB, r *rand.Rand, kind, w, h int) []byte {
	var b bytes.Buffer
	e := png.Encoder{CompressionLevel: []png.CompressionLevel{png.DefaultCompression, png.BestSpeed, png.NoCompression}[r.IntN(3)]}
	if err := e.Encode(&b, drawing(r, kind, w, h)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The fast path takes each file that is in order, gives the pixels that the slow way gives, of any region, and with a file that was verified before
// too, for which it needs nothing of the file behind the region.
func TestFastPathTakesWhatIsInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for _, level := range kernel.Levels() {
		d := NewDecoder(level)
		for k := range 40 {
			w, h := 1+r.IntN(300), 1+r.IntN(200)
			file := encodeDrawing(t, r, k%kinds, w, h)
			x, y := r.IntN(w), r.IntN(h)
			region := image.Rect(x, y, x+1+r.IntN(w-x), y+1+r.IntN(h-y))
			if k%4 == 0 {
				region = image.Rect(0, 0, w, h)
			}
			want, got, again := pixels{width: region.Dx()}, pixels{width: region.Dx()}, pixels{width: region.Dx()}
			if _, _, err := d.Parse(file); err != nil || d.decodeSlowly(region, &want) != nil || d.Verified() {
				t.Fatal(err, d.Verified())
			}
			if err := d.Decode(region, &got); err != nil || !d.Verified() || !bytes.Equal(got.pix, want.pix) {
				t.Fatalf("%s, kind %d, %v of %d×%d: %v, verified %t", level, k%kinds, region, w, h, err, d.Verified())
			}
			if _, _, err := d.Parse(file); err != nil || d.Verified() {
				t.Fatal("a parsed file is verified already", err)
			}
			d.UseVerified()
			if err := d.Decode(region, &again); err != nil || !d.Verified() || !bytes.Equal(again.pix, want.pix) {
				t.Fatalf("%s, kind %d, %v of %d×%d, verified: %v", level, k%kinds, region, w, h, err)
			}
		}
	}
}

// damage changes a file: bits, bytes, a part cut out, repeated, or of another file, the end cut off.
func damage(r *rand.Rand, file, other []byte) []byte {
	b := bytes.Clone(file)
	const header = 33 // what Parse refuses at once is not what is tested
	at := func() int { return header + r.IntN(len(b)-header) }
	for range 1 + r.IntN(3) {
		i, j := at(), at()
		i, j = min(i, j), max(i, j)
		switch r.IntN(7) {
		case 0, 1:
			b[i] ^= 1 << r.IntN(8)
		case 2:
			b[i] = byte(r.Uint32())
		case 3:
			b = append(b[:i], b[min(j, i+1+r.IntN(9)):]...)
		case 4:
			b = append(b[:j:j], b[max(i, j-1-r.IntN(99)):]...)
		case 5:
			copy(b[i:min(j, i+300)], other[min(i, len(other)):])
		case 6:
			b = b[:j]
		}
		if len(b) <= header {
			break
		}
	}
	return b
}

// Whatever a file holds, the fast path changes neither its verdict nor its pixels, nor which rows come before an error: those rows and more.
func TestFastPathChangesNoVerdict(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	files := make([][]byte, 3*kinds)
	for i := range files {
		files[i] = encodeDrawing(t, r, i%kinds, 20+r.IntN(100), 20+r.IntN(100))
	}
	d, seen := NewDecoder(kernel.Levels()[0]), map[string]int{}
	for k := range 6000 {
		file := damage(r, files[k%len(files)], files[r.IntN(len(files))])
		w, h, err := d.Parse(file)
		if err != nil || w*h > 1<<20 {
			continue
		}
		region := image.Rect(w/5, h/7, w-w/3, h-h/4)
		want, got := pixels{width: region.Dx()}, pixels{width: region.Dx()}
		slow := d.decodeSlowly(region, &want)
		fast := d.decode(region, &got)
		if fmt.Sprint(slow) != fmt.Sprint(fast) || slow == nil && !bytes.Equal(got.pix, want.pix) {
			t.Fatalf("%v, without the fast path %v; same pixels: %t; of %x", fast, slow, bytes.Equal(got.pix, want.pix), file)
		}
		seen[fmt.Sprintf("refused %t, verified %t", slow != nil, d.Verified())]++
	}
	if len(seen) != 3 || seen["refused true, verified true"] != 0 {
		t.Errorf("%v", seen)
	}
	t.Log(seen)
}

// Pictures in turns, of any kind, take no new memory.
func TestNoAllocations(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 10))
	var files [kinds][]byte
	for i := range files {
		files[i] = encodeDrawing(t, r, i, 120, 90)
	}
	d, k := NewDecoder(kernel.Levels()[0]), 0
	n := testing.AllocsPerRun(5*kinds, func() {
		_, _, err := d.Parse(files[k%kinds])
		if err != nil || d.Decode(image.Rect(10, 10, 60, 50), nowhere{}) != nil {
			t.Fatal(err)
		}
		k++
	})
	if n != 0 {
		t.Errorf("%v allocations a picture", n)
	}
}
