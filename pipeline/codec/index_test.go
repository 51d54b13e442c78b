package codec

import (
	"bytes"
	"image"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// gathered keeps all rows.
type gathered struct {
	width int
	pix   []byte
}

func (g *gathered) Rows(pix []byte, stride, n int) {
	for i := range n {
		g.pix = append(g.pix, pix[i*stride:][:g.width]...)
	}
}

// An index is about one Parse, upright or not, and is made when asked for.
func TestUseIndex(t *testing.T) {
	d := NewDecoder(kernel.Levels()[0])
	file := jpegtest.Encode(jpegtest.Photograph(1, 1, 120, 90), jpegtest.Options{Sampling: jpegtest.S420})
	r := image.Rect(50, 33, 77, 61)
	decode := func(parse func([]byte, Limits) (int, int, error), file, index []byte, interval int) []byte {
		t.Helper()
		d.UseIndex(index, interval)
		if _, _, err := parse(file, DefaultLimits()); err != nil {
			t.Fatal(err)
		}
		g := gathered{width: 3 * r.Dx()}
		if err := d.Decode(r, &g); err != nil {
			t.Fatal(err)
		}
		return g.pix
	}
	want := decode(d.Parse, file, nil, 8)
	index := d.AppendIndex([]byte("before"))[len("before"):]
	if !IsIndexOf(index, 8) || IsIndexOf(index, 5) {
		t.Fatalf("an index of %d bytes", len(index))
	}
	for _, parse := range []func([]byte, Limits) (int, int, error){d.Parse, d.ParseUpright} {
		if got := decode(parse, file, index, 8); !bytes.Equal(got, want) {
			t.Error("other pixels")
		}
		if more := d.AppendIndex(nil); len(more) != 0 {
			t.Error("an index was made though there was one")
		}
		decode(parse, file, []byte{0}, 5)
		if again := d.AppendIndex(nil); !IsIndexOf(again, 5) {
			t.Error("none was made in place of one without sense")
		}
		if _, _, err := parse(file, DefaultLimits()); err != nil || len(d.AppendIndex(nil)) != 0 {
			t.Error("one was made though nobody asked", err)
		}
	}
	d.UseIndex(index, 8)
	if _, _, err := d.Parse([]byte("no picture"), DefaultLimits()); err == nil {
		t.Error("text was accepted")
	}
	other := jpegtest.Encode(jpegtest.Photograph(2, 2, 120, 90), jpegtest.Options{Sampling: jpegtest.S420})
	if got := decode(d.Parse, other, nil, 0); bytes.Equal(got, want) {
		t.Error("the index of a file that was not decoded stayed in use")
	}
}

// A PNG has an index where its bytes are in order, and a WebP. With it what lies behind the region is not looked at; that is told of one Parse alone, of a file
// that says so itself.
func TestIndexOfWholeFiles(t *testing.T) {
	d := NewDecoder(kernel.Levels()[0])
	file := archived(t).files["png-c6b8i0-33x18"]
	cut := file[:len(file)-30] // within its data
	decode := func(file, index []byte) error {
		d.UseIndex(index, 8)
		if _, _, err := d.Parse(file, DefaultLimits()); err != nil {
			t.Fatal(err)
		}
		return d.Decode(image.Rect(3, 1, 20, 3), nowhere{})
	}
	if err := decode(file, nil); err != nil {
		t.Fatal(err)
	}
	index := d.AppendIndex(nil)
	if !IsIndexOf(index, 8) || !IsIndexOf(index, 5) || len(d.AppendIndex(nil)) != 0 {
		t.Fatalf("an index of %d bytes, %d more", len(index), len(d.AppendIndex(nil)))
	}
	d.UseIndex(nil, 8)
	if _, _, err := d.Parse(file, DefaultLimits()); err != nil || !bytes.Equal(d.AppendIndex(nil), index) {
		t.Error("another index where nothing was decoded", err)
	}
	if err := decode(cut, index); err != nil {
		t.Error("the region of a file that is said to be in order:", err)
	}
	if more := d.AppendIndex(nil); len(more) != 0 {
		t.Error("an index was made though there was one")
	}
	if err := decode(cut, nil); err == nil || len(d.AppendIndex(nil)) != 0 {
		t.Error("a file that is cut is taken, or has an index:", err)
	}
	if err := decode(cut, []byte{8, 1, 2}); err == nil || len(d.AppendIndex(nil)) != 0 {
		t.Error("a file that is cut is taken, or has an index:", err)
	}
	if err := decode(archived(t).files["png-c6b8i1-33x18"], nil); err != nil || len(d.AppendIndex(nil)) != 0 {
		t.Error("an interlaced PNG has an index", err)
	}
	lossy := archived(t).files["webp-glass-64x48"]
	if err := decode(lossy, nil); err != nil || !bytes.Equal(d.AppendIndex(nil), index) {
		t.Error("a WebP has no index", err)
	}
	broken := bytes.Clone(lossy)
	broken[bytes.Index(broken, []byte("ALPH"))+8] = 0xff // a kind of transparency that there is not
	if decode(broken, nil) == nil || decode(broken, index) != nil {
		t.Error("transparency is not looked at, or is though the file was decoded before")
	}
	gif := archived(t).files["gif-big"]
	d.UseIndex(index, 8)
	if _, _, err := d.Parse(gif, DefaultLimits()); err != nil || len(d.AppendIndex(nil)) != 0 {
		t.Error("a GIF has an index", err)
	}
}

// LacksCopy is about files of the formats that have copies, while they are decoded without.
func TestLacksCopy(t *testing.T) {
	d, files := NewDecoder(kernel.Levels()[0]), archived(t).files
	m := jpegtest.Photograph(1, 1, 120, 90)
	for _, c := range []struct {
		what  string
		file  []byte
		lacks bool
	}{
		{"lossy WebP", files["webp-lossy-101x67"], true},
		{"lossy WebP with transparency", files["webp-glass-64x48"], true},
		{"lossless WebP", files["webp-lossless-101x67"], false},
		{"progressive JPEG", jpegtest.Encode(m, jpegtest.Options{Progressive: jpegtest.Script(3)}), true},
		{"baseline JPEG", jpegtest.Encode(m, jpegtest.Options{}), false},
		{"PNG", files["png-c6b8i0-33x18"], false},
		{"GIF", files["gif-big"], false},
	} {
		d.RecordCopies(true)
		d.UseIndex(nil, 8)
		if _, _, err := d.ParseUpright(c.file, DefaultLimits()); err != nil || d.LacksCopy() != c.lacks {
			t.Errorf("%s: %t, %v", c.what, d.LacksCopy(), err)
		}
		index := d.AppendIndex(nil)
		if IsCopy(index) != c.lacks {
			t.Errorf("%s has an index of %d bytes", c.what, len(index))
		}
		d.UseIndex(index, 0)
		if _, _, err := d.Parse(c.file, DefaultLimits()); err != nil || d.LacksCopy() {
			t.Errorf("%s with its index: %t, %v", c.what, d.LacksCopy(), err)
		}
		if d.Release(); d.LacksCopy() {
			t.Error("no file lacks a copy")
		}
	}
}
