package codec

import (
	"bytes"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// UseIndex is about the next Parse, or ParseUpright, alone. index is what AppendIndex once made of the very same bytes:
// then Decode skips what lies outside its region. Where it is empty, or makes no sense, Decode notes one on its way,
// for JPEG files with a mark every interval × 8 columns, for AppendIndex; an interval of 0 says not to. Sequential JPEG
// files of one scan have an index, PNG files that are in order, and WebP files; progressive JPEG files where
// RecordCopies says so; others do not.
func (d *Decoder) UseIndex(index []byte, interval int) {
	d.jpeg.index, d.jpeg.interval = index, interval
	for _, f := range d.whole {
		f.index, f.wanted = index, interval > 0
	}
}

// RecordCopies says whether AppendIndex makes an index of progressive JPEG files, which is a copy of the file that
// takes less time to decode. At first it does not.
func (d *Decoder) RecordCopies(wanted bool) { d.jpeg.RecordCopies(wanted) }

// IsCopy says whether an index is a copy, which is about as large as the file. All others are small.
func IsCopy(index []byte) bool { return jpeg.IsCopy(index) }

// AppendIndex appends the index of the parsed file, reading what Decode left out. It appends nothing where none was
// asked for, where one was in use, and where the file has none.
func (d *Decoder) AppendIndex(dst []byte) []byte {
	if d.current == format(d.jpeg) {
		return d.jpeg.AppendIndex(dst)
	}
	if f, is := d.current.(*wholeFormat); is {
		return f.appendIndex(dst)
	}
	return dst
}

// IsIndexOf says whether an index, of a file of any format, is one that AppendIndex makes with the interval.
func IsIndexOf(index []byte, interval int) bool {
	return bytes.Equal(index, verified) || jpeg.IndexInterval(index) == interval
}

// MaxIndexInterval is the largest interval of an index.
const MaxIndexInterval = jpeg.MaxIndexInterval

// verified is the index of a PNG or WebP file: no more than that it decodes to its end. That of a JPEG file begins with
// another byte, or with 0 and 'c'.
var verified = []byte{0, 'v'}

// scans is the JPEG decoder, which has limits of its own, and what the next Parse knows of an index.
type scans struct {
	*jpeg.Decoder
	limits   jpeg.Limits
	index    []byte
	interval int
}

// Parse implements format.
func (s *scans) Parse(src []byte) (w, h int, err error) {
	if len(s.index) > 0 {
		w, h, err = s.ParseIndexed(src, s.limits, s.index)
	} else {
		w, h, err = s.Decoder.Parse(src, s.limits)
	}
	s.Record(s.interval)
	return w, h, err
}

// wholeFormat is a format whose files are decoded to their end for their verdict alone, and what the next Parse knows
// of an index.
type wholeFormat struct {
	verifier
	index  []byte
	wanted bool // by the next Parse
	noted  bool // an index of the parsed file is wanted
	tried  bool // the parsed file was decoded
}

// A verifier is a format that need not decode what lies behind a region of a file that it decoded before. UseVerified
// tells of the parsed file that it is one; Verified reports whether Decode found so, or UseVerified told.
type verifier interface {
	format
	UseVerified()
	Verified() bool
}

// Parse implements format.
func (f *wholeFormat) Parse(src []byte) (w, h int, err error) {
	w, h, err = f.verifier.Parse(src)
	known := bytes.Equal(f.index, verified)
	f.tried, f.noted = false, f.wanted && !known
	if err == nil && known {
		f.UseVerified()
	}
	return w, h, err
}

// Decode implements format.
func (f *wholeFormat) Decode(r image.Rectangle, sink pixel.Sink) error {
	f.tried = true
	return f.verifier.Decode(r, sink)
}

// appendIndex is AppendIndex.
func (f *wholeFormat) appendIndex(dst []byte) []byte {
	if !f.noted {
		return dst
	}
	f.noted = false
	if !f.tried {
		_ = f.Decode(image.Rect(0, 0, 1, 1), nowhere{}) // what is wrong is told by Verified
	}
	if f.Verified() {
		dst = append(dst, verified...)
	}
	return dst
}
