// Package codec turns encoded bytes into pixels. It looks at the bytes, never at the name, checks the plan's limits against the
// header before anything is allocated, and hands the rest to the format's own package. It starts no goroutine.
//
// All its errors are verdicts on the bytes: the same on every machine.
package codec

import (
	"bytes"
	"errors"
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// ErrFormat says that the bytes are no picture of a format that is decoded here.
var ErrFormat = errors.New("not a picture this version decodes")

// ErrTooLarge says that a picture breaks a limit.
var ErrTooLarge = errors.New("over the limit")

// Limits bound what a picture may claim and take. They are part of the plan, since they decide verdicts.
type Limits struct {
	// EncodedBytes is the largest file.
	EncodedBytes int64 `json:"encoded_bytes"`
	// Side is the largest width or height, in pixels.
	Side int `json:"side"`
	// Pixels is the largest width × height.
	Pixels int64 `json:"pixels"`
	// Scans is the largest number of scans of a JPEG file.
	Scans int `json:"scans"`
	// ScanBlocks is the largest sum over the scans of a JPEG file of several of the blocks of 8×8 samples that each visits.
	ScanBlocks int64 `json:"scan_blocks"`
}

// maxSide is the largest side that the JPEG decoder and Pillow take.
const maxSide = 65500

// DefaultLimits are Pillow's: sides to 65,500 and 178,956,970 pixels, beyond which it speaks of a decompression bomb. Files to 256 MiB, and the
// scans of a JPEG, which it does not limit, to what jpeg.Limits says.
func DefaultLimits() Limits {
	return Limits{
		EncodedBytes: 256 << 20, Side: maxSide, Pixels: 178_956_970,
		Scans: jpeg.DefaultScans, ScanBlocks: jpeg.DefaultScanBlocks,
	}
}

// Check says what is wrong with the limits themselves.
func (l Limits) Check() error {
	switch {
	case l.EncodedBytes < 1 || l.EncodedBytes > 1<<30:
		return fmt.Errorf("encoded_bytes %d is not within 1 to %d", l.EncodedBytes, 1<<30)
	case l.Side < 1 || l.Side > maxSide:
		return fmt.Errorf("side %d is not within 1 to %d", l.Side, maxSide)
	case l.Pixels < 1 || l.Pixels > 1<<32:
		return fmt.Errorf("pixels %d is not within 1 to %d", l.Pixels, int64(1)<<32)
	case l.Scans < 1 || l.Scans > 1<<20:
		return fmt.Errorf("scans %d is not within 1 to %d", l.Scans, 1<<20)
	case l.ScanBlocks < 1 || l.ScanBlocks > 1<<40:
		return fmt.Errorf("scan_blocks %d is not within 1 to %d", l.ScanBlocks, int64(1)<<40)
	}
	return nil
}

// CheckFile refuses a file by its size.
func (l Limits) CheckFile(n int64) error {
	if n > l.EncodedBytes {
		return fmt.Errorf("a file of %d bytes is %w of %d", n, ErrTooLarge, l.EncodedBytes)
	}
	return nil
}

func (l Limits) checkSize(w, h int) error {
	switch {
	case w > l.Side || h > l.Side:
		return fmt.Errorf("a header of %d×%d pixels is %w of %d a side", w, h, ErrTooLarge, l.Side)
	case int64(w)*int64(h) > l.Pixels:
		return fmt.Errorf("a header of %d×%d pixels is %w of %d pixels", w, h, ErrTooLarge, l.Pixels)
	}
	return nil
}

// A Decoder decodes one picture after another. It reuses its memory and is not for concurrent use.
type Decoder struct{ jpeg *jpeg.Decoder }

// NewDecoder returns a decoder that runs the kernels of the level.
func NewDecoder(level string) *Decoder { return &Decoder{jpeg.NewDecoder(level)} }

// Parse looks at a file and returns the picture's size. The decoder keeps src until the next call.
func (d *Decoder) Parse(src []byte, l Limits) (w, h int, err error) {
	if !bytes.HasPrefix(src, []byte("\xff\xd8")) {
		return 0, 0, unknown(src)
	}
	w, h, err = d.jpeg.Parse(src, jpeg.Limits{Scans: l.Scans, ScanBlocks: l.ScanBlocks})
	switch {
	case errors.Is(err, jpeg.ErrLimit):
		return 0, 0, fmt.Errorf("%w: %w", ErrTooLarge, err)
	case err != nil:
		return 0, 0, err
	}
	return w, h, l.checkSize(w, h)
}

// Decode gives the rows of region r of the parsed picture, as RGB, to sink.
func (d *Decoder) Decode(r image.Rectangle, sink pixel.Sink) error { return d.jpeg.Decode(r, sink) }

// magics are the first bytes of formats people have in their folders, to name what is refused.
var magics = []struct{ prefix, name string }{
	{"\x89PNG\r\n\x1a\n", "a PNG"},
	{"GIF8", "a GIF"},
	{"RIFF", "a WebP or other RIFF file"},
	{"BM", "a BMP"},
	{"II*\x00", "a TIFF"},
	{"MM\x00*", "a TIFF"},
	{"\x00\x00\x00\x0cjP", "a JPEG 2000"},
	{"%PDF", "a PDF"},
	{"<", "a text file (HTML, XML or SVG)"},
}

func unknown(src []byte) error {
	if len(src) == 0 {
		return fmt.Errorf("an empty file is %w", ErrFormat)
	}
	for _, m := range magics {
		if bytes.HasPrefix(src, []byte(m.prefix)) {
			return fmt.Errorf("%s is %w", m.name, ErrFormat)
		}
	}
	return fmt.Errorf("a file that begins with %q is %w", src[:min(len(src), 8)], ErrFormat)
}
