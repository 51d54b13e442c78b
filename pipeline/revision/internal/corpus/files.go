package corpus

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/codec/exif/exiftest"
	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
	"github.com/feedwater-io/feedwater/pipeline/imageformat"
)

// Formats are those that have a folder of files each.
var Formats = imageformat.Names()

// The folders besides.
const (
	smallFolder  = "small"  // a few pictures, for ops
	maskedFolder = "masked" // pictures that have masks
	masksFolder  = "masks"  // these
	turnedFolder = "turned" // pictures whose EXIF data turns them

	oversizeFolder = "oversize" // narrow pictures, which become longer than any that is made
)

// files writes the files of a corpus.
type files struct {
	dir, root string
	random    *rand.Rand
	count     int
}

func (f *files) write() error {
	if err := f.committed(); err != nil {
		return err
	}
	if err := f.made(); err != nil {
		return err
	}
	if err := f.turned(); err != nil {
		return err
	}
	if err := f.oversize(); err != nil {
		return err
	}
	return f.small()
}

// turned makes pictures with EXIF data and XMP that is right, odd and wrong.
func (f *files) turned() error {
	c := exiftest.New()
	for _, name := range c.Names {
		if err := f.put(turnedFolder, name, c.Files[name], 0); err != nil {
			return err
		}
	}
	return nil
}

// oversize makes narrow pictures, and one that is not.
func (f *files) oversize() error {
	for i, size := range [][2]int{{1, 256}, {300, 1}, {2, 600}, {1, 3}, {1, 30_000}, {65_000, 1}, {40, 30}} {
		text := jpegtest.Encode(jpegtest.Photograph(uint64(3000+i), i, size[0], size[1]), jpegtest.Options{Quality: 90})
		if err := f.put(oversizeFolder, "narrow", text, 0); err != nil {
			return err
		}
	}
	return nil
}

// put writes a file, and some damaged ones that are made of it.
func (f *files) put(folder, name string, text []byte, damaged int) error {
	for i := range damaged + 1 {
		file := fmt.Sprintf("%05d-%d-%s.jpg", f.count, i, name)
		if i > 0 {
			text = f.damage(text)
		}
		dir := filepath.Join(f.dir, folder, "a")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			return err
		}
	}
	f.count++
	return nil
}

// damage returns a file that is a little different: a bit, a byte, a number, the end, a piece that is gone or there
// twice.
func (f *files) damage(text []byte) []byte {
	text = slices.Clone(text)
	if len(text) < 4 {
		return append(text, 0)
	}
	at := f.random.IntN(len(text))
	if f.random.IntN(3) == 0 {
		at = f.random.IntN(min(len(text), 200)) // the head
	}
	n := 1 + f.random.IntN(min(40, len(text)-at))
	switch f.random.IntN(6) {
	case 0:
		text[at] ^= 1 << f.random.IntN(8)
	case 1:
		text[at] = byte(f.random.Uint32())
	case 2:
		text[at] = []byte{0, 1, 0x7f, 0x80, 0xff}[f.random.IntN(5)]
	case 3:
		return text[:at]
	case 4:
		return slices.Delete(text, at, at+n)
	case 5:
		return slices.Insert(text, at, slices.Clone(text[at:at+n])...)
	}
	return text
}

// committed takes the files of the codecs' tests.
func (f *files) committed() error {
	z, err := zip.OpenReader(filepath.Join(f.root, "pipeline", "codec", "testdata", "corpus.zip"))
	if err != nil {
		return err
	}
	defer func() { _ = z.Close() }()
	for _, file := range z.File {
		r, err := file.Open()
		if err != nil {
			return err
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if folder := formatOf(text); folder != "" {
			if err := f.put(folder, file.Name, text, 3); err != nil {
				return err
			}
		}
		if strings.HasPrefix(file.Name, "turned") || strings.Contains(file.Name, "exif") {
			if err := f.put(turnedFolder, file.Name, text, 2); err != nil {
				return err
			}
		}
	}
	return nil
}

// formatOf names the format that a file begins like.
func formatOf(text []byte) string {
	for _, format := range imageformat.All {
		if bytes.HasPrefix(text, []byte(format.Prefix[:min(len(format.Prefix), 4)])) { // the rest may be damaged
			return format.Name
		}
	}
	return ""
}

// made makes JPEG files of every kind that the tests' encoder knows, and masks.
func (f *files) made() error {
	samplings := [][]jpegtest.Factors{nil, jpegtest.S420, jpegtest.S422, jpegtest.S440, jpegtest.S411, jpegtest.S410, jpegtest.Grey, jpegtest.CMYK}
	for i := range 160 {
		o := jpegtest.Options{Sampling: samplings[i%len(samplings)], Quality: 5 + f.random.IntN(95), Extended: i%7 == 0, StandardTables: i%5 == 0}
		if i%3 == 0 {
			o.Restart = 1 + f.random.IntN(9)
		}
		if i%4 == 1 && i%len(samplings) < 6 {
			o.Progressive = jpegtest.Script(3)[:1+f.random.IntN(len(jpegtest.Script(3)))]
		}
		if len(o.Sampling) == 4 {
			o.Header = []jpegtest.Header{jpegtest.HeaderNone, jpegtest.HeaderAdobeYCCK}[i/8%2]
		}
		w, h := 1+f.random.IntN(150), 1+f.random.IntN(150)
		if err := f.put("jpeg", "made", jpegtest.Encode(jpegtest.Photograph(uint64(i), i, w, h), o), 4); err != nil {
			return err
		}
	}
	return nil
}

// small takes the self-test's pictures for ops, and some of no more than a few pixels; and for masks.
func (f *files) small() error {
	for i, size := range [][2]int{{97, 64}, {40, 130}, {1, 1}, {3, 2}, {256, 7}, {64, 64}} {
		text := jpegtest.Encode(jpegtest.Photograph(uint64(1000+i), i, size[0], size[1]), jpegtest.Options{Quality: 95})
		if err := f.put(smallFolder, "made", text, 0); err != nil {
			return err
		}
	}
	for _, name := range []string{"interlaced.png", "indexed.png", "lossy.webp", "masks.bmp", "interlaced.gif", "420.jpg"} {
		text, err := os.ReadFile(filepath.Join(f.root, "pipeline", "numerics", name))
		if err != nil {
			return err
		}
		if err := f.put(smallFolder, name, text, 0); err != nil {
			return err
		}
	}
	return f.masks()
}
