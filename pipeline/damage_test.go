package pipeline

import (
	"bytes"
	"image"
	"image/color/palette"
	"image/gif"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/feedwater-io/feedwater/batch"
)

// halves are a picture of 20×20 pixels in formats whose damage shows only where they are decoded, cut off in the middle.
func halves(t *testing.T) map[string][]byte {
	t.Helper()
	m := image.NewPaletted(image.Rect(0, 0, 20, 20), palette.Plan9)
	for i := range m.Pix {
		m.Pix[i] = byte(i * i)
	}
	var asPNG, asGIF bytes.Buffer
	if err := png.Encode(&asPNG, m); err != nil {
		t.Fatal(err)
	}
	if err := gif.Encode(&asGIF, m, nil); err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"png": asPNG.Bytes()[:asPNG.Len()-100], "gif": asGIF.Bytes()[:asGIF.Len()-100]}
}

// seldom crops the picture itself in some epochs, and in most of them what is around it.
const seldom = `[{"op": "RandomCrop", "size": [8, 8], "padding": 40}]`

// What is wrong with a picture does not depend on what is drawn for it, also where nothing of it is seen.
func TestDamageIsFoundWhateverIsSeen(t *testing.T) {
	for name, file := range halves(t) {
		for _, plan := range []string{`{"transforms": ` + seldom + `}`, `{"views": [` + seldom + `, ` + seldom + `]}`} {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "class"), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "class", "half.png"), file)
			if taken := takenOf(t, open(t, dir, plan, Options{Workers: 1})); taken > 0 {
				t.Errorf("%s, %s: taken in %d epochs", name, plan, taken)
			}
		}
	}
}

// The same of its mask.
func TestDamageOfMasksIsFoundWhateverIsSeen(t *testing.T) {
	images, masks := t.TempDir(), t.TempDir()
	var whole bytes.Buffer
	if err := png.Encode(&whole, image.NewGray(image.Rect(0, 0, 20, 20))); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(images, "a.png"), whole.Bytes())
	write(t, filepath.Join(masks, "a.png"), halves(t)["png"])
	j, err := masked(t, images, masks, `{"transforms": `+seldom+`, "masks": {}, "fields": ["image", "mask"]}`, Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if taken := takenOf(t, j); taken > 0 {
		t.Errorf("taken in %d epochs", taken)
	}
}

// takenOf is how many of 50 epochs of one sample are made.
func takenOf(t *testing.T, j *Job) (n int) {
	t.Helper()
	for epoch := range uint32(50) {
		if _, r := fetch(t, j, batch.Name{Epoch: epoch, Count: 1}); r.Err == nil {
			n++
		} else if !isVerdict(r.Err) {
			t.Fatal(r.Err)
		}
	}
	return n
}
