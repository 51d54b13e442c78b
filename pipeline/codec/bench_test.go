package codec

import (
	"bytes"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/image/bmp"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
)

// photograph is one of those that FEEDWATER_PHOTOS names, or something like it.
func photograph(b *testing.B) image.Image {
	paths, _ := filepath.Glob(filepath.Join(os.Getenv("FEEDWATER_PHOTOS"), "*", "*.jpg"))
	if len(paths) == 0 {
		m, err := jpeg.Decode(bytes.NewReader(jpegtest.Encode(jpegtest.Photograph(1, 1, 500, 375), jpegtest.Options{})))
		if err != nil {
			b.Fatal(err)
		}
		return m
	}
	f, err := os.Open(paths[0])
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	m, err := jpeg.Decode(f)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// BenchmarkDecode: whole pictures; a second is so many bytes of pixels. WebP files, which Go does not write, are of the corpus.
func BenchmarkDecode(b *testing.B) {
	m := photograph(b)
	files := map[string][]byte{}
	for name, encode := range map[string]func(*bytes.Buffer) error{
		"png":  func(w *bytes.Buffer) error { return png.Encode(w, m) },
		"gif":  func(w *bytes.Buffer) error { return gif.Encode(w, m, nil) },
		"bmp":  func(w *bytes.Buffer) error { return bmp.Encode(w, m) },
		"jpeg": func(w *bytes.Buffer) error { return jpeg.Encode(w, m, nil) },
	} {
		var w bytes.Buffer
		if err := encode(&w); err != nil {
			b.Fatal(err)
		}
		files[name] = w.Bytes()
	}
	c := archived(b)
	files["webp-lossy"], files["webp-lossless"] = c.files["webp-lossy-101x67"], c.files["webp-lossless-101x67"]
	files["gif-interlaced"], files["bmp-runs"], files["png-interlaced"] = c.files["gif-big"], c.files["bmp-rle8-40x12"], c.files["png-c6b8i1-33x18"]
	for _, name := range []string{"jpeg", "png", "png-interlaced", "webp-lossy", "webp-lossless", "gif", "gif-interlaced", "bmp", "bmp-runs"} {
		b.Run(name, func(b *testing.B) { benchmark(b, files[name], image.Rectangle{}) })
	}
}

func benchmark(b *testing.B, file []byte, r image.Rectangle) {
	d := NewDecoder("scalar")
	b.ReportAllocs()
	for b.Loop() {
		w, h, err := d.Parse(file, DefaultLimits())
		if err != nil {
			b.Fatal(err)
		}
		if r.Empty() {
			r = image.Rect(0, 0, w, h)
		}
		if err := d.Decode(r, nowhere{}); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(3 * w * h))
	}
}

// BenchmarkBomb: how long it takes to refuse.
func BenchmarkBomb(b *testing.B) {
	for name, file := range bombs() {
		b.Run(fmt.Sprintf("%s/%d", name, len(file)), func(b *testing.B) {
			d := NewDecoder("scalar")
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := d.Parse(file, DefaultLimits()); err == nil {
					b.Fatal("accepted")
				}
			}
		})
	}
}
