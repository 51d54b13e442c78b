package pipeline

import (
	"archive/zip"
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

var update = flag.Bool("update", false, "write the pictures of the numerics self-test")

// numericsPictures are the self-test's pictures: every sampling with code of its own, both orders of magnitude of size, restart markers,
// quantisers that drive the inverse transform out of range, a scan with flipped bits, progressive files, whole and cut short so that blocks are smoothed
// with and without some of their low coefficients, and both kinds of four components.
func numericsPictures() map[string][]byte {
	encode := func(seed uint64, w, h int, o jpegtest.Options) []byte {
		return jpegtest.Encode(jpegtest.Photograph(seed, int(seed), w, h), o)
	}
	wild := [64]uint16{}
	for i := range wild {
		wild[i] = uint16(1 + i*977%60000)
	}
	damaged := encode(9, 90, 60, jpegtest.Options{Sampling: jpegtest.S420})
	for i := len(damaged) / 2; i < len(damaged)-2; i += 37 {
		damaged[i] ^= 0x10
		if damaged[i] == 0xff || damaged[i-1] == 0xff {
			damaged[i] = 0
		}
	}
	return map[string][]byte{
		"444.jpg":     encode(1, 97, 64, jpegtest.Options{}),
		"420.jpg":     encode(2, 101, 75, jpegtest.Options{Sampling: jpegtest.S420}),
		"422.jpg":     encode(3, 66, 103, jpegtest.Options{Sampling: jpegtest.S422, Restart: 3}),
		"440.jpg":     encode(4, 71, 55, jpegtest.Options{Sampling: jpegtest.S440}),
		"411.jpg":     encode(5, 83, 49, jpegtest.Options{Sampling: jpegtest.S411}),
		"grey.jpg":    encode(6, 59, 77, jpegtest.Options{Sampling: jpegtest.Grey}),
		"rgb.jpg":     encode(7, 40, 33, jpegtest.Options{Header: jpegtest.HeaderAdobeRGB}),
		"wild.jpg":    encode(8, 64, 48, jpegtest.Options{WideQuant: true, ClaimQuant: &[2][64]uint16{wild, wild}}),
		"damaged.jpg": damaged,

		"progressive.jpg": encode(10, 75, 82, jpegtest.Options{Sampling: jpegtest.S420, Progressive: jpegtest.Script(3), Restart: 7}),
		"smoothed.jpg":    encode(11, 91, 70, jpegtest.Options{Sampling: jpegtest.S420, Progressive: jpegtest.Script(3)[:3]}),
		"cmyk.jpg":        encode(12, 50, 37, jpegtest.Options{Sampling: jpegtest.CMYK, Header: jpegtest.HeaderNone}),
		"ycck.jpg":        encode(13, 37, 50, jpegtest.Options{Sampling: jpegtest.CMYK, Header: jpegtest.HeaderAdobeYCCK}),
	}
}

// numericsCopies are the self-test's pictures that are files of the codec's corpus.
var numericsCopies = map[string]string{
	"interlaced.png": "png-c6b8i1-13x11", "indexed.png": "png-c3b4i0-13x11", "lossy.webp": "webp-lossy-33x31", "lossless.webp": "webp-lossless-15x17",
	"interlaced.gif": "gif-16-1-0", "runs.bmp": "bmp-rle4-17x6", "masks.bmp": "bmp-mask-565-17x6",
}

func TestNumericsPicturesAreOfTheCorpus(t *testing.T) {
	z, err := zip.OpenReader("codec/testdata/corpus.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for name, of := range numericsCopies {
		want, err := fs.ReadFile(z, of)
		if err != nil {
			t.Fatal(err)
		}
		if have, err := numericsFiles.ReadFile("numerics/" + name); err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is not %s (%v)", name, of, err)
		}
	}
}

// The pictures are committed, so that the self-test does not depend on the encoder; this says where they come from.
func TestNumericsPicturesAreTheEncoders(t *testing.T) {
	for name, want := range numericsPictures() {
		path := filepath.Join("numerics", name)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is not what the encoder makes (%v); run go test ./pipeline -run Numerics -update", name, err)
		}
	}
}

func TestNumericsAreThoseOfAllLevels(t *testing.T) {
	seen := map[string]string{}
	for _, level := range kernel.Levels() {
		digest, err := measureNumerics(level, "")
		if err != nil {
			t.Fatal(err)
		}
		seen[digest] = level
	}
	if len(seen) != 1 {
		t.Errorf("levels compute differently: %v", seen)
	}
}

// The digest is pinned: a change of it says that runs cannot go on from states of earlier versions with the same pixels.
func TestNumericsArePinned(t *testing.T) {
	digest, err := measureNumerics(kernel.Scalar, "")
	if err != nil {
		t.Fatal(err)
	}
	if digest != pinnedNumerics {
		t.Errorf("numerics %s, pinned %s: all pixels or draws of this version differ from those of the last", digest, pinnedNumerics)
	}
}

const pinnedNumerics = committedNumerics

func TestNumericsTellASaltApart(t *testing.T) {
	a, err := measureNumerics(kernel.Scalar, "")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := measureNumerics(kernel.Scalar, "other"); err != nil || a == b {
		t.Errorf("numerics %s and, salted, %s (%v)", a, b, err)
	}
}

func BenchmarkNumerics(b *testing.B) {
	level, err := kernel.Best()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := measureNumerics(level, ""); err != nil {
			b.Fatal(err)
		}
	}
}
