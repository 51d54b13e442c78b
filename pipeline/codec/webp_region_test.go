package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// A region of a WebP that ends at any row has the pixels of the whole picture, with an index and without, and leaves nothing that another one shows.
func TestWebPRegionsAtEveryBottom(t *testing.T) {
	c := archived(t)
	for _, level := range kernel.Levels() {
		whole, d := NewDecoder(level), NewDecoder(level)
		r := rand.New(rand.NewPCG(8, 1))
		files := 0
		for name, b := range c.files {
			if !strings.HasPrefix(name, "webp-") {
				continue
			}
			files++
			w, h, pix, err := decode(whole, b, DefaultLimits(), image.Rectangle{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, bottom := range r.Perm(h) {
				part := image.Rect(r.IntN(w), r.IntN(bottom+1), w, bottom+1)
				for _, index := range [][]byte{nil, verified} {
					d.UseIndex(index, 0)
					if _, _, got, err := decode(d, b, DefaultLimits(), part); err != nil || !bytes.Equal(got, crop(pix, w, part)) {
						t.Fatalf("%s: %v of %d×%d differs with an index of %d bytes (%v)", name, part, w, h, len(index), err)
					}
				}
			}
		}
		if files < 80 {
			t.Errorf("%d files", files)
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
