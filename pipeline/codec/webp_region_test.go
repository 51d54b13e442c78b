package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// webpIndexes are none, and those that a file has: that it decodes, and its copy.
func webpIndexes(t *testing.T, d *Decoder, b []byte) (indexes [][]byte) {
	t.Helper()
	for _, copies := range []bool{false, true} {
		d.RecordCopies(copies)
		d.UseIndex(nil, 8)
		if _, _, err := d.Parse(b, DefaultLimits()); err != nil {
			t.Fatal(err)
		}
		indexes = append(indexes, d.AppendIndex(nil))
	}
	d.RecordCopies(false)
	if !bytes.Equal(indexes[0], verified) {
		t.Fatalf("an index of %d bytes", len(indexes[0]))
	}
	return append(indexes, nil)
}

// A region of a WebP that ends at any row has the pixels of the whole picture, with an index, a copy and without, and leaves nothing that another one
// shows.
func TestWebPRegionsAtEveryBottom(t *testing.T) {
	c := archived(t)
	for _, level := range kernel.Levels() {
		whole, d := NewDecoder(level), NewDecoder(level)
		r := rand.New(rand.NewPCG(8, 1))
		files, copies := 0, 0
		for name, b := range c.files {
			if !strings.HasPrefix(name, "webp-") {
				continue
			}
			files++
			w, h, pix, err := decode(whole, b, DefaultLimits(), image.Rectangle{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			indexes := webpIndexes(t, d, b)
			if IsCopy(indexes[1]) {
				copies++
			}
			for _, bottom := range r.Perm(h) {
				part := image.Rect(r.IntN(w), r.IntN(bottom+1), w, bottom+1)
				for _, index := range indexes {
					d.UseIndex(index, 0)
					if _, _, got, err := decode(d, b, DefaultLimits(), part); err != nil || !bytes.Equal(got, crop(pix, w, part)) {
						t.Fatalf("%s: %v of %d×%d differs with an index of %d bytes (%v)", name, part, w, h, len(index), err)
					}
				}
			}
		}
		if files < 80 || copies < 40 {
			t.Errorf("%d files, %d have a copy", files, copies)
		}
	}
}

// A copy is made where it is asked for, of a lossy picture, also in place of the index that it had; and none of a copy.
func TestCopyOfWebP(t *testing.T) {
	d := NewDecoder(kernel.Levels()[0])
	files := archived(t).files
	makeIndex := func(file, index []byte, copies bool) []byte {
		t.Helper()
		d.RecordCopies(copies)
		d.UseIndex(index, 8)
		if _, _, err := d.Parse(file, DefaultLimits()); err != nil {
			t.Fatal(err)
		}
		return d.AppendIndex(nil)
	}
	lossy := files["webp-lossy-101x67"]
	copied := makeIndex(lossy, nil, true)
	if !IsCopy(copied) || !IsIndexOf(copied, 8) || len(copied) > 2*len(lossy)+2000 {
		t.Fatalf("an index of %d bytes", len(copied))
	}
	for name, c := range map[string]struct {
		file, index, want []byte
		copies            bool
	}{
		"not asked for":      {lossy, nil, verified, false},
		"beside an index":    {lossy, verified, copied, true},
		"an index is enough": {lossy, verified, nil, false},
		"of a copy":          {lossy, copied, nil, true},
		"no sense":           {lossy, []byte{1, 2}, copied, true},
		"lossless":           {files["webp-lossless-101x67"], nil, verified, true},
		"lossless, indexed":  {files["webp-lossless-101x67"], verified, nil, true},
		"PNG, indexed":       {files["png-c6b8i0-33x18"], verified, nil, true},
		"PNG":                {files["png-c6b8i0-33x18"], nil, verified, true},
	} {
		if got := makeIndex(c.file, c.index, c.copies); !bytes.Equal(got, c.want) {
			t.Errorf("%s: %d bytes, want %d", name, len(got), len(c.want))
		}
	}
}

// A copy that makes no sense does no harm: it panics nowhere, and a file that is not what the copy is of is decoded.
func TestWebPCopyOfNoSense(t *testing.T) {
	d := NewDecoder(kernel.Levels()[0])
	r := rand.New(rand.NewPCG(8, 3))
	lossy := archived(t).files["webp-lossy-101x67"]
	w, h, want, err := decode(d, lossy, DefaultLimits(), image.Rectangle{})
	if err != nil {
		t.Fatal(err)
	}
	copied := webpIndexes(t, d, lossy)[1]
	refused := 0
	for range 3000 {
		b := bytes.Clone(copied)
		for range 1 + r.IntN(3) {
			b[len(copied)-1-r.IntN(len(copied)-2)] ^= 1 << r.IntN(8)
		}
		if r.IntN(2) == 0 {
			b = b[:2+r.IntN(len(b)-2)]
		}
		d.UseIndex(guardtest.Copy(t, b), 0)
		_, _, got, err := decode(d, lossy, DefaultLimits(), image.Rect(0, 0, w, h))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(got, want) {
			refused++
		}
	}
	if refused < 1000 {
		t.Errorf("%d copies were found out", refused)
	}
	for _, name := range []string{"webp-lossless-101x67", "webp-glass-64x48"} {
		file := archived(t).files[name]
		_, _, want, err := decode(d, file, DefaultLimits(), image.Rectangle{})
		if err != nil {
			t.Fatal(err)
		}
		d.UseIndex(copied[:300], 0)
		if _, _, got, err := decode(d, file, DefaultLimits(), image.Rectangle{}); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: other pixels, or %v", name, err)
		}
	}
}

// cutWebPs are lossy and lossless pictures of one chunk, whole and with data that ends early, by name.
func cutWebPs(t *testing.T) map[string][]byte {
	files := map[string][]byte{}
	for name, b := range archived(t).files {
		files[name] = b
		if name != "webp-lossy-101x67" && name != "webp-lossless-101x67" {
			continue
		}
		chunk := b[20:][:binary.LittleEndian.Uint32(b[16:])]
		for n := len(chunk) - 1; n > 20; n -= 1 + n/50 {
			files[fmt.Sprintf("%s, %d bytes", name, n)] = riff(string(b[12:16]), string(chunk[:n]))
		}
	}
	return files
}

// A WebP that is refused is refused for the same reason wherever the region ends, and one that is taken is taken wherever it ends.
func TestWebPVerdictAtAnyBottom(t *testing.T) {
	d := NewDecoder(kernel.Levels()[0])
	r := rand.New(rand.NewPCG(8, 2))
	refused, taken := 0, 0
	for name, b := range cutWebPs(t) {
		w, h, err := d.Parse(b, DefaultLimits())
		if d.Format(b) != "webp" || err != nil {
			continue
		}
		want := d.Decode(image.Rect(0, 0, w, h), nowhere{})
		if want == nil {
			taken++
		} else {
			refused++
		}
		for _, part := range []image.Rectangle{image.Rect(0, 0, 1, 1), randomRegion(r, w, h), randomRegion(r, w, h)} {
			got := d.Decode(part, nowhere{})
			if (got == nil) != (want == nil) || got != nil && got.Error() != want.Error() {
				t.Fatalf("%s, %v: %v, as a whole %v", name, part, got, want)
			}
		}
	}
	if refused < 100 || taken < 80 {
		t.Errorf("%d files are refused, %d taken", refused, taken)
	}
}
