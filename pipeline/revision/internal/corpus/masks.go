package corpus

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
)

// masks writes pictures and the masks that go with them: grey, with palettes, of another size, damaged.
func (f *files) masks() error {
	for i := range 12 {
		w, h := 20+f.random.IntN(80), 20+f.random.IntN(80)
		name := fmt.Sprintf("%02d", i)
		picture := jpegtest.Encode(jpegtest.Photograph(uint64(2000+i), i, w, h), jpegtest.Options{Sampling: jpegtest.S420})
		if i == 11 {
			w++
		}
		mask, err := f.mask(w, h, i%2 == 0)
		if err != nil {
			return err
		}
		if i == 10 {
			mask = f.damage(mask)
		}
		for path, text := range map[string][]byte{
			filepath.Join(maskedFolder, "a", name+".jpg"): picture, filepath.Join(masksFolder, "a", name+".png"): mask,
		} {
			path = filepath.Join(f.dir, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(path, text, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// mask encodes numbers in patches.
func (f *files) mask(w, h int, grey bool) ([]byte, error) {
	palette := color.Palette{}
	for i := range 256 {
		palette = append(palette, color.RGBA{uint8(i * 7), uint8(i * 13), uint8(i), 255})
	}
	p, g := image.NewPaletted(image.Rect(0, 0, w, h), palette), image.NewGray(image.Rect(0, 0, w, h))
	for i := range p.Pix {
		p.Pix[i] = uint8(i%w/9 + i/w/9*16 + f.random.IntN(2))
		g.Pix[i] = p.Pix[i]
	}
	var b bytes.Buffer
	if grey {
		err := png.Encode(&b, g)
		return b.Bytes(), err
	}
	err := png.Encode(&b, p)
	return b.Bytes(), err
}
