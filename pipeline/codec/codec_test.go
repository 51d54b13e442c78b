package codec

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/codec/exif"
	"github.com/feedwater-io/feedwater/pipeline/internal/budget"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// chunk is a piece of a PNG.
func chunk(name string, data []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, name...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// pngOf is an RGB picture of n bytes of zeros, whatever its sides say.
func pngOf(w, h uint32, n int, more ...[]byte) []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h)
	b := append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", append(head, 8, 2, 0, 0, 0))...)
	for _, m := range more {
		b = append(b, m...)
	}
	return append(append(b, chunk("IDAT", deflated(n))...), chunk("IEND", nil)...)
}

func deflated(n int) []byte {
	var b bytes.Buffer
	w, _ := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	zeros := make([]byte, 1<<16)
	for ; n > 0; n -= len(zeros) {
		_, _ = w.Write(zeros[:min(n, len(zeros))])
	}
	_ = w.Close()
	return b.Bytes()
}

func le(values ...uint32) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// riff is a WebP file of chunks: a name, a payload, and so on.
func riff(chunks ...string) []byte {
	b := []byte("WEBP")
	for i := 0; i < len(chunks); i += 2 {
		b = append(append(append(b, chunks[i]...), le(uint32(len(chunks[i+1])))...), chunks[i+1]...)
	}
	return append(append([]byte("RIFF"), le(uint32(len(b)))...), b...)
}

// lossless is the payload of a lossless picture of a size.
func lossless(w, h uint32, data string) string {
	return "\x2f" + string(le((w-1)|(h-1)<<14)) + data
}

// oneColor is data of a lossless picture whose pixels take no bits: each of the five trees has one symbol. The byte behind it fills the chunk.
const oneColor = "\x88\x88\x08\x00\x00"

// bombs are small files that claim much.
func bombs() map[string][]byte {
	gif := func(w, h string) []byte {
		return []byte("GIF89a" + w + h + "\x00\x00\x00,\x00\x00\x00\x00" + w + h + "\x00\x08\x04\x00\x01\x02\x03\x00;")
	}
	bmp := func(w, h, way uint32) []byte {
		b := append([]byte("BM"), le(60, 0, 1078, 40, w, h, 8<<16|1, way, 0, 0, 0, 0, 0)...)
		return append(b, make([]byte, 1030)...)
	}
	return map[string][]byte{
		"PNG of a megabyte": pngOf(20000, 20000, 220<<20, chunk("tEXt", make([]byte, 750_000))),
		"PNG of 2³¹":        pngOf(1<<31-1, 1<<31-1, 100),
		"GIF canvas":        []byte("GIF89a\xff\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x08\x02\x00\x01\x00;"),
		"GIF frame":         gif("\xff\xff", "\xff\xff"),
		"WebP lossless":     riff("VP8L", lossless(16384, 16384, string(make([]byte, 101)))),
		"WebP lossy":        riff("VP8 ", "\x10\x00\x00\x9d\x01\x2a\xff\x3f\xff\x3f"+string(make([]byte, 100))),
		"WebP of one color": riff("VP8L", lossless(4097, 4200, oneColor)),
		"WebP of one glass": riff("VP8X", "\x10\x00\x00\x00\x00\x10\x00\x67\x10\x00", "ALPH", "\x01"+oneColor,
			"VP8 ", "\x10\x00\x00\x9d\x01\x2a\x01\x10\x68\x10"+string(make([]byte, 100))),
		"WebP canvas":          riff("VP8X", "\x02\x00\x00\x00\xff\xff\x00\xff\xff\x00", "ANIM", "......", "ANMF", string(make([]byte, 40))),
		"BMP":                  bmp(1<<20, 1<<20, 0),
		"BMP of run lengths":   bmp(60000, 60000, 1),
		"BMP of negative size": bmp(100, 1<<31+5, 0),
	}
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A picture over the limit is refused by its header, before anything of its size is allocated.
func TestBombs(t *testing.T) {
	for name, b := range bombs() {
		d := NewDecoder("scalar")
		var err error
		n := allocated(func() { _, _, err = d.Parse(b, DefaultLimits()) })
		if err == nil || n > 16<<10 {
			t.Errorf("%s, %d bytes: %v, after %d bytes", name, len(b), err, n)
		}
		if !errors.Is(err, ErrTooLarge) && !strings.HasSuffix(name, "canvas") && !strings.HasSuffix(name, "size") && !strings.HasSuffix(name, "2³¹") {
			t.Errorf("%s: %v, which is no limit", name, err)
		}
	}
}

// Within the limits too, what a file cannot hold is not allocated.
func TestSmallBombs(t *testing.T) {
	files := map[string][]byte{
		"GIF": []byte("GIF89a\x00\x30\x00\x30\x00\x00\x00,\x00\x00\x00\x00\x00\x30\x00\x30\x00\x08\x04\x00\x01\x02\x03\x00;"),
		"PNG": pngOf(12000, 12000, 100),
		"BMP": append(append([]byte("BM"), le(60, 0, 54, 40, 12000, 12000, 24<<16|1, 0, 0, 0, 0, 0, 0)...), make([]byte, 100)...),
	}
	for name, b := range files {
		d := NewDecoder("scalar")
		var err error
		n := allocated(func() { _, _, _, err = decode(d, b, DefaultLimits(), image.Rect(0, 0, 5, 5)) })
		if err == nil || n > 1<<20 {
			t.Errorf("%s: %v, after %d bytes", name, err, n)
		}
	}
}

// A lossless picture has 16 megapixels whatever its file's size, and 1,024 pixels more for each byte.
func TestLosslessOfOneColor(t *testing.T) {
	d := NewDecoder("scalar")
	var got rows
	w, h, err := d.Parse(riff("VP8L", lossless(4096, 4096, oneColor)), DefaultLimits())
	if err != nil || w != 4096 || h != 4096 {
		t.Fatal(w, h, err)
	}
	if err := d.Decode(image.Rect(9, 9, 19, 19), &got); err != nil || got != 10 {
		t.Errorf("%d rows, %v", got, err)
	}
	for n, ok := range map[int]bool{9982: false, 9984: true} { // the file has 20 bytes more
		_, _, err := d.Parse(riff("VP8L", lossless(5000, 5404, oneColor+string(make([]byte, n-10)))), DefaultLimits())
		if ok != (err == nil) || !ok && !errors.Is(err, ErrTooLarge) {
			t.Errorf("a chunk of %d bytes: %v", n, err)
		}
	}
}

// Text and profiles are not decompressed, whatever they would become. Pillow does, and refuses what becomes too long.
func TestSideChunksStayCompressed(t *testing.T) {
	long := deflated(64 << 20)
	for name, head := range map[string]string{"zTXt": "k\x00\x00", "iCCP": "k\x00\x00", "iTXt": "k\x00\x01\x00\x00\x00"} {
		b := pngOf(5, 5, 80, chunk(name, append([]byte(head), long...)))
		d := NewDecoder("scalar")
		var err error
		n := allocated(func() { _, _, _, err = decode(d, b, DefaultLimits(), image.Rectangle{}) })
		if err != nil || n > 1<<20 {
			t.Errorf("%s: %v, after %d bytes", name, err, n)
		}
	}
}

// A region is the same as that part of the whole, and damage shows whatever the region.
func TestRegions(t *testing.T) {
	c := archived(t)
	d := NewDecoder("scalar")
	r := rand.New(rand.NewPCG(5, 5))
	for name, b := range c.files {
		for _, parse := range []func([]byte, Limits) (int, int, error){d.Parse, d.ParseUpright} {
			w, h, pix, err := decodeAs(d, parse, b, DefaultLimits(), image.Rectangle{})
			if err != nil {
				if w, h, err := parse(b, DefaultLimits()); err == nil && d.Decode(randomRegion(r, w, h), collectorOf{new(collector), 1}) == nil {
					t.Errorf("%s: refused as a whole, but not in part", name)
				}
				continue
			}
			for range 3 {
				part := randomRegion(r, w, h)
				_, _, got, err := decodeAs(d, parse, b, DefaultLimits(), part)
				if err != nil || !bytes.Equal(got, crop(pix, w, part)) {
					t.Errorf("%s: %v of %d×%d differs (%v)", name, part, w, h, err)
				}
			}
		}
	}
}

func randomRegion(r *rand.Rand, w, h int) image.Rectangle {
	x, y := r.IntN(w), r.IntN(h)
	return image.Rect(x, y, x+1+r.IntN(w-x), y+1+r.IntN(h-y))
}

func crop(pix []byte, w int, r image.Rectangle) (part []byte) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		part = append(part, pix[3*(y*w+r.Min.X):3*(y*w+r.Max.X)]...)
	}
	return part
}

// A file cannot be decoded before it is parsed, nor after it was refused, nor outside of itself.
func TestDecodeKeepsToTheParsedFile(t *testing.T) {
	c := archived(t)
	for _, name := range examples {
		b := c.files[name]
		d := NewDecoder("scalar")
		if err := d.Decode(image.Rect(0, 0, 1, 1), collectorOf{new(collector), 1}); err == nil {
			t.Errorf("%s: decoded before it was parsed", name)
		}
		w, h, err := d.Parse(b, DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []image.Rectangle{{}, image.Rect(0, 0, w+1, h), image.Rect(-1, 0, 1, 1), image.Rect(0, h, 1, h+1)} {
			if err := d.Decode(r, collectorOf{new(collector), r.Dx()}); err == nil {
				t.Errorf("%s: decoded %v of %d×%d", name, r, w, h)
			}
		}
		if _, _, err := d.Parse(b, Limits{EncodedBytes: 1, Side: 1, Pixels: 1}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.Decode(image.Rect(0, 0, 1, 1), collectorOf{new(collector), 1}); err == nil {
			t.Errorf("%s: decoded though refused", name)
		}
	}
}

// examples are one file of every format and way of storing.
var examples = []string{
	"png-c2b8i0-33x18", "png-c6b16i1-13x11", "png-c3b4i0-33x18", "png-animated", "webp-lossy-101x67", "webp-lossless-101x67", "webp-glass-101x67",
	"webp-animated-lossy-glass", "gif-16-0-None", "gif-256-1-0", "gif-part-local", "bmp-8-17x6", "bmp-24-17x6", "bmp-mask-565-17x6", "bmp-rle8-17x6", "bmp-rle4-17x6",
}

// Any bytes are decoded or refused: within the memory that the limits allow, whatever was decoded before, and
// in part as in whole.
func fuzz(f *testing.F, prefix string) {
	var names []string
	c := archived(f)
	for name, b := range c.files {
		if strings.Contains(name, prefix) && len(b) < 4000 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for i, name := range names {
		f.Add(c.files[name], uint64(i))
	}
	limits := Limits{EncodedBytes: 1 << 20, Side: maxSide, Pixels: 1 << 20}
	used := NewDecoder("scalar")
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		d := NewDecoder(kernel.Levels()[0]) // against the scalar kernels of the one that was used
		var w, h int
		var pix []byte
		var err error
		// A pixel takes up to 8 bytes in the decoder and 3 in this test, which doubles its buffer as it grows; package vp8l takes some 10 KB for
		// each group of Huffman codes, of which a file has as many as it has blocks.
		budget.Hold(t, uint64(40*limits.Pixels+64<<20), func() { w, h, pix, err = decode(d, b, limits, image.Rectangle{}) })
		_, _, again, usedErr := decode(used, b, limits, image.Rectangle{})
		if (err == nil) != (usedErr == nil) || !bytes.Equal(pix, again) {
			t.Fatalf("a decoder that was used before differs: %v, %v", err, usedErr)
		}
		if err != nil {
			return
		}
		part := randomRegion(rand.New(rand.NewPCG(seed, 1)), w, h)
		if _, _, got, err := decode(d, b, limits, part); err != nil || !bytes.Equal(got, crop(pix, w, part)) {
			t.Fatalf("%v of %d×%d differs (%v)", part, w, h, err)
		}
	})
}

// FuzzOrientation: any bytes say something, or are refused. Text that is compressed takes 1 MiB at most.
func FuzzOrientation(f *testing.F) {
	for name, b := range archived(f).files {
		if strings.HasPrefix(name, "turned-") {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		budget.Hold(t, 8<<20+8*uint64(len(b)), func() {
			if o, err := exif.Orientation(b); err == nil && (o < 1 || o > 8) {
				t.Errorf("orientation %d", o)
			}
		})
	})
}

func FuzzPNG(f *testing.F)  { fuzz(f, "png-") }
func FuzzWebP(f *testing.F) { fuzz(f, "webp-") }
func FuzzGIF(f *testing.F)  { fuzz(f, "gif-") }
func FuzzBMP(f *testing.F)  { fuzz(f, "bmp-") }
