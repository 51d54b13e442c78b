// Package jpeg decodes regions of JPEG files, sequential or progressive, to RGB rows. It gives the bytes of Pillow's convert("RGB") (libjpeg-turbo
// with its defaults) and refuses what Pillow refuses; orientation tags and colour profiles are ignored, as they are there.
//
// A file passes three stages. Parse walks the markers and decides whether the file is accepted. A source turns
// entropy-coded data into coefficients, a run of MCUs at a time, or, for files of several scans, all of the region's first. The output stage transforms them, upsamples, converts
// colours and hands rows to a pixel.Sink. Only what the region needs is transformed; the rest is skipped in the
// entropy-coded data, or, in a file of one scan whose index is at hand, not even read. The package starts no goroutine.
package jpeg

import (
	"errors"
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/codec/internal/strip"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// The verdicts of Parse. Every error of Parse wraps one of them and says what is wrong and at which byte.
var (
	// ErrNotJPEG: the bytes do not start like a JPEG file.
	ErrNotJPEG = errors.New("not a JPEG file")
	// ErrUnsupported: a kind of JPEG that this package does not decode.
	ErrUnsupported = errors.New("unsupported kind of JPEG")
	// ErrTruncated: the file ends before the picture does. Entropy-coded data that ends without any marker counts as
	// truncated even if it would have been enough, which Pillow accepts in one such file of twenty.
	ErrTruncated = errors.New("truncated JPEG")
	// ErrBroken: a marker or a table that makes no sense.
	ErrBroken = errors.New("broken JPEG")
	// ErrLimit: the scans are more than the limits allow, which Pillow does not limit.
	ErrLimit = errors.New("too many scans")
)

// Limits bound the work that a file of several scans can ask for. Files of one scan have none to limit but their pixels. A limit
// that is 0 has its default.
type Limits struct {
	// Scans is the largest number of scans. They are counted by the markers in the bytes behind the first scan's header. Default 1000; encoders
	// write 4 to 20, and 190 if each coefficient has its own.
	Scans int
	// ScanBlocks is the largest sum over all scans of the blocks of 8x8 samples that a scan visits. Default 1<<27, which is 256 scans of all
	// components of 11 megapixels, or 16 of 178. An empty visit takes a scan of a few bytes some nanoseconds. A block of a sequential scan
	// counts as 8, and a restart, of which there are as many as the restart interval asks for, as 6, so that any takes about a second at most.
	ScanBlocks int64
}

// The defaults of Limits.
const (
	DefaultScans      = 1000
	DefaultScanBlocks = 1 << 27
)

func (l Limits) withDefaults() Limits {
	if l.Scans == 0 {
		l.Scans = DefaultScans
	}
	if l.ScanBlocks == 0 {
		l.ScanBlocks = DefaultScanBlocks
	}
	return l
}

// Decoder decodes one file after the other. It keeps its memory for the next file: some 170 KB, a copy of the
// entropy-coded data, and a few rows of MCUs of the region. For files of several scans Decode takes two bytes for each
// sample of the region and, if they are progressive, an eighth of a byte for each sample of the picture; Release, and the next Parse, let go
// of what is above 64 MiB for a component. It is not safe for concurrent use.
type Decoder struct {
	parser   parser
	parsed   bool
	coder    coder
	single   sequential
	indexed  indexed
	several  multiscan
	output   output
	index    index // no marks: none
	interval int   // of the index to note, 0: none

	level        string
	copies       bool // are recorded
	copyInterval int  // of the copy to make, 0: none
	copier       *copier
}

// keptBytes is the most that each of a decoder's buffers keeps for the next file.
const keptBytes = 32 << 20

// NewDecoder returns a decoder that uses the kernels of a level, which must be one that this processor can run.
func NewDecoder(level string) *Decoder {
	k := kernel.JPEGFor(level)
	d := &Decoder{level: level}
	d.coder.vector, d.coder.segment.unstuff = kernel.Vector(level), k.Unstuff
	d.output.kernels = k
	return d
}

// Parse reads everything of a file but its entropy-coded data and returns the size of the picture, or one of the verdicts
// above. The verdict is final: Decode of an accepted file succeeds for every region, and damage inside the
// entropy-coded data gives the pixels that libjpeg gives. Parse allocates no memory that depends on the size the file claims, so
// the caller can refuse a size before Decode. The decoder keeps src until the next Parse or Release; it must not change.
func (d *Decoder) Parse(src []byte, l Limits) (w, h int, err error) {
	d.parsed, d.interval, d.copyInterval, d.index.marks = false, 0, 0, d.index.marks[:0]
	d.several.trim()
	if err := d.parser.parse(src, l.withDefaults(), &d.coder.segment); err != nil {
		return 0, 0, fmt.Errorf("jpeg: %w", err)
	}
	d.accept()
	return d.parser.frame.w, d.parser.frame.h, nil
}

// Release lets go of the parsed file, and of memory that only a huge one needs.
func (d *Decoder) Release() {
	d.parsed, d.interval, d.copyInterval = false, 0, 0
	d.parser.release()
	d.coder.cursor.src = nil
	d.coder.segment.forget()
	d.indexed.below.segment.forget()
	d.several.trim()
}

// accept makes the parsed file the one to decode.
func (d *Decoder) accept() {
	d.parsed = true
	d.coder.scan = nil
}

// Decode gives the pixels of region r of the parsed file to sink, top to bottom, up to 8 rows at a time. It can be called
// again, also with another region. It fails only if there is no parsed file or r is empty or not inside the picture.
func (d *Decoder) Decode(r image.Rectangle, sink pixel.Sink) error {
	f := &d.parser.frame
	if err := strip.CheckRegion("jpeg", d.parsed, r, f.w, f.h); err != nil {
		return err
	}
	d.output.begin(f, d.parser.space(), r, sink)
	d.output.run(d.source())
	return nil
}

// source opens the stage that makes the coefficients of the MCUs which the output stage needs.
func (d *Decoder) source() source {
	f, scans := &d.parser.frame, d.parser.scans
	if len(d.index.marks) > 0 {
		d.coder.ready(d.parser.src, f, &scans[0], acBits)
		d.indexed.open(&d.coder, f, &d.index, d.output.mcus)
		return &d.indexed
	}
	if f.single(&scans[0]) {
		d.coder.open(d.parser.src, f, &scans[0])
		if d.interval > 0 {
			d.coder.record(mcuInterval(d.interval, f))
		}
		d.single.open(&d.coder)
		return &d.single
	}
	d.several.decode(d.parser.src, f, scans, &d.coder, d.output.mcus)
	return &d.several
}
