package codec

import (
	"bytes"
	"errors"
	"image"
	"runtime"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// claim is a JPEG file with another size in its header.
func claim(o jpegtest.Options, marker byte, w, h int) []byte {
	b := jpegtest.Encode(jpegtest.Photograph(1, 1, 16, 16), o)
	at := bytes.Index(b, []byte{0xff, marker, 0})
	copy(b[at+5:], []byte{byte(h >> 8), byte(h), byte(w >> 8), byte(w)})
	return b
}

// What breaks a limit is refused by its header, and nothing of the size it claims is allocated.
func TestLimits(t *testing.T) {
	progressive := jpegtest.Options{Progressive: jpegtest.Script(3)}
	small := DefaultLimits()
	small.Scans = len(progressive.Progressive) - 1
	few := DefaultLimits()
	few.ScanBlocks = 10
	for name, c := range map[string]struct {
		file []byte
		l    Limits
	}{
		"pixels":             {claim(jpegtest.Options{}, 0xc0, 65500, 65500), DefaultLimits()},
		"pixels progressive": {claim(progressive, 0xc2, 65500, 65500), DefaultLimits()},
		"side":               {claim(jpegtest.Options{}, 0xc0, 40000, 1), Limits{Side: 39999, Pixels: 1 << 30, Scans: 1, ScanBlocks: 1}},
		"scans":              {claim(progressive, 0xc2, 16, 16), small},
		"blocks":             {claim(progressive, 0xc2, 16, 16), few},
	} {
		d := NewDecoder(kernel.Scalar)
		refuse := func() {
			if _, _, err := d.Parse(c.file, c.l); !errors.Is(err, ErrTooLarge) {
				t.Errorf("%s: %v", name, err)
			}
		}
		refuse()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		refuse()
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 8<<10 { // the error's own are less
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
}

type rows int

func (r *rows) Rows(_ []byte, _, n int) { *r += rows(n) }

// A file inside its limits decodes, and a foreign one is named.
func TestParse(t *testing.T) {
	d := NewDecoder(kernel.Scalar)
	w, h, err := d.Parse(claim(jpegtest.Options{Progressive: jpegtest.Script(3)}, 0xc2, 16, 16), DefaultLimits())
	if err != nil || w != 16 || h != 16 {
		t.Fatal(w, h, err)
	}
	var got rows
	if err := d.Decode(image.Rect(3, 2, 9, 15), &got); err != nil || got != 13 {
		t.Errorf("%d rows, %v", got, err)
	}
	for _, foreign := range []string{"", "%PDF-1.7", "hello"} {
		if _, _, err := d.Parse([]byte(foreign), DefaultLimits()); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", foreign, err)
		}
	}
}
