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
	if IndexInterval(index) != 8 {
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
		if again := d.AppendIndex(nil); IndexInterval(again) != 5 {
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
	png := archived(t).files["png-c6b8i1-33x18"]
	d.UseIndex(index, 8)
	if _, _, err := d.Parse(png, DefaultLimits()); err != nil || len(d.AppendIndex(nil)) != 0 {
		t.Error("a PNG has an index", err)
	}
}
