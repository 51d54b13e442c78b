// Package codec turns encoded bytes into pixels. It looks at the bytes, never at the name, checks the plan's limits
// against the header before anything is allocated, and hands the rest to the format's own package. It starts no
// goroutine.
//
// All its errors are verdicts on the bytes: the same on every machine.
package codec

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/codec/bmp"
	"github.com/feedwater-io/feedwater/pipeline/codec/gif"
	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg"
	"github.com/feedwater-io/feedwater/pipeline/codec/png"
	"github.com/feedwater-io/feedwater/pipeline/codec/webp"
	"github.com/feedwater-io/feedwater/pipeline/imageformat"
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
	// ScanBlocks is the largest sum over the scans of a JPEG file of several of the blocks of 8×8 samples that each
	// visits, where one of a sequential scan counts as 8, and a restart as 6.
	ScanBlocks int64 `json:"scan_blocks"`
}

// maxSide is the largest side that the JPEG decoder and Pillow take.
const maxSide = 65500

// DefaultLimits are Pillow's: sides to 65,500 and 178,956,970 pixels, beyond which it refuses a file as a decompression
// bomb. Files to 256 MiB, and the scans of a JPEG, which it does not limit, to what jpeg.Limits says. They are the
// highest limits too.
func DefaultLimits() Limits {
	return Limits{
		EncodedBytes: 256 << 20, Side: maxSide, Pixels: 178_956_970,
		Scans: jpeg.DefaultScans, ScanBlocks: jpeg.DefaultScanBlocks,
	}
}

// Check says what is wrong with the limits themselves.
func (l Limits) Check() error {
	most := DefaultLimits()
	switch {
	case l.EncodedBytes < 1 || l.EncodedBytes > most.EncodedBytes:
		return fmt.Errorf("encoded_bytes %d is not within 1 to %d", l.EncodedBytes, most.EncodedBytes)
	case l.Side < 1 || l.Side > most.Side:
		return fmt.Errorf("side %d is not within 1 to %d", l.Side, most.Side)
	case l.Pixels < 1 || l.Pixels > most.Pixels:
		return fmt.Errorf("pixels %d is not within 1 to %d", l.Pixels, most.Pixels)
	case l.Scans < 1 || l.Scans > most.Scans:
		return fmt.Errorf("scans %d is not within 1 to %d", l.Scans, most.Scans)
	case l.ScanBlocks < 1 || l.ScanBlocks > most.ScanBlocks:
		return fmt.Errorf("scan_blocks %d is not within 1 to %d", l.ScanBlocks, most.ScanBlocks)
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

// A format decodes one picture after another, in memory of its own. Parse allocates nothing that depends on the size it
// returns. Release lets go of src until the next Parse.
type format interface {
	Parse(src []byte) (w, h int, err error)
	Decode(r image.Rectangle, sink pixel.Sink) error
	Release()
}

// A Decoder decodes one picture after another. It reuses its memory and is not for concurrent use.
type Decoder struct {
	jpeg    *scans
	png     *png.Decoder
	whole   []*wholeFormat
	formats []named
	current format
	upright upright
}

// named is a format with its decoder.
type named struct {
	imageformat.Format
	format
}

// NewDecoder returns a decoder that runs the kernels of the level.
func NewDecoder(level string) *Decoder {
	j := &scans{Decoder: jpeg.NewDecoder(level)}
	p := png.NewDecoder(level)
	w := webp.NewDecoder(level)
	whole := []*wholeFormat{{verifier: p}, {verifier: w, copier: w}}
	decoders := map[string]format{"jpeg": j, "png": whole[0], "webp": whole[1], "gif": gif.NewDecoder(), "bmp": bmp.NewDecoder()}
	d := &Decoder{jpeg: j, png: p, whole: whole}
	for _, f := range imageformat.All {
		d.formats = append(d.formats, named{f, decoders[f.Name]})
	}
	return d
}

// Parse looks at a file and returns the picture's size. Orientation tags are ignored. The decoder keeps src until the
// next call, or Release.
func (d *Decoder) Parse(src []byte, l Limits) (w, h int, err error) {
	d.current, d.upright.orientation = nil, 1
	defer d.UseIndex(nil, 0)
	d.jpeg.limits = jpeg.Limits{Scans: l.Scans, ScanBlocks: l.ScanBlocks}
	f := d.find(src)
	if f == nil {
		return 0, 0, unknown(src)
	}
	if w, h, err = f.Parse(src); errors.Is(err, jpeg.ErrLimit) || errors.Is(err, webp.ErrLimit) {
		return 0, 0, fmt.Errorf("%w: %w", ErrTooLarge, err)
	} else if err != nil {
		return 0, 0, err
	}
	if err := l.checkSize(w, h); err != nil {
		return 0, 0, err
	}
	d.current = f
	return w, h, nil
}

// ParseMask is Parse for a mask, a PNG with a palette or grey; Decode then gives the number that each pixel is, three
// times.
func (d *Decoder) ParseMask(src []byte, l Limits) (w, h int, err error) {
	if w, h, err = d.parsePNG(src, l, "a mask is a PNG with a palette or grey"); err != nil {
		return 0, 0, err
	}
	return w, h, d.png.Mask()
}

// ParseColours is Parse for a mask of colours, which formats that lose some cannot hold: a PNG.
func (d *Decoder) ParseColours(src []byte, l Limits) (w, h int, err error) {
	return d.parsePNG(src, l, "a mask of colours is a PNG")
}

// parsePNG is Parse for a PNG; refusal is the error of other files.
func (d *Decoder) parsePNG(src []byte, l Limits, refusal string) (w, h int, err error) {
	if w, h, err = d.Parse(src, l); err != nil {
		return 0, 0, err
	}
	if d.current != format(d.whole[0]) {
		return 0, 0, errors.New(refusal)
	}
	return w, h, nil
}

func (d *Decoder) find(src []byte) format {
	if i := d.lookUp(src); i >= 0 {
		return d.formats[i].format
	}
	return nil
}

// lookUp finds the format among the decoder's; negative: none has such files.
func (d *Decoder) lookUp(src []byte) int {
	return slices.IndexFunc(d.formats, func(f named) bool { return bytes.HasPrefix(src, []byte(f.Prefix)) })
}

// Format names the format of imageformat.All by which Parse would take a file, whether it decodes or not. Empty: none.
func (d *Decoder) Format(src []byte) string {
	if i := d.lookUp(src); i >= 0 {
		return d.formats[i].Name
	}
	return ""
}

// Decode gives the rows of region r of the parsed picture, as RGB, to sink. Damage that shows only there is an error
// too.
func (d *Decoder) Decode(r image.Rectangle, sink pixel.Sink) error {
	if d.current == nil {
		return errors.New("decode without a parsed picture")
	}
	if d.upright.orientation != 1 {
		return d.upright.decode(d.current, r, sink)
	}
	return d.current.Decode(r, sink)
}

// Check says whether the parsed picture decodes, where nothing of it is needed: the error is what Decode would say of
// any region.
func (d *Decoder) Check() error {
	if d.current == format(d.jpeg) { // whose damage Parse finds
		return nil
	}
	return d.Decode(image.Rect(0, 0, 1, 1), nowhere{})
}

// ReadsWhole reports whether decoding any region of the parsed file reads the whole file, for its verdict.
func (d *Decoder) ReadsWhole() bool {
	f, is := d.current.(*wholeFormat)
	return is && !f.Verified()
}

// nowhere is a sink that keeps nothing.
type nowhere struct{}

func (nowhere) Rows([]byte, int, int) {}

// Release lets go of the parsed file, and of memory that only a huge one needs. Until the next Parse there is nothing
// to decode.
func (d *Decoder) Release() {
	d.current = nil
	for _, f := range d.formats {
		f.Release()
	}
}
