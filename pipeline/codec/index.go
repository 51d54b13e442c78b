package codec

import (
	"bytes"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg"
	"github.com/feedwater-io/feedwater/pipeline/codec/webp"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// UseIndex is about the next Parse, or ParseUpright, alone. index is what AppendIndex once made of the very same bytes:
// then Decode skips what lies outside its region. Where it is empty, or makes no sense, Decode notes one on its way,
// for JPEG files with a mark every interval × 8 columns, for AppendIndex; an interval of 0 says not to. Sequential JPEG
// files of one scan have an index, PNG files that are in order, and WebP files; where RecordCopies says so progressive
// JPEG files too, and lossy WebP files another one; others do not.
func (d *Decoder) UseIndex(index []byte, interval int) {
	d.jpeg.index, d.jpeg.interval = index, interval
	for _, f := range d.whole {
		f.index, f.wanted = index, interval > 0
	}
}

// RecordCopies says whether AppendIndex makes a copy of a file of which there is one, in place of any other index: of a
// progressive JPEG, or a lossy WebP, which takes less time to decode. At first it does not.
func (d *Decoder) RecordCopies(wanted bool) {
	d.jpeg.RecordCopies(wanted)
	for _, f := range d.whole {
		f.copies = wanted
	}
}

// LacksCopy reports whether the parsed file is one of which there are copies, a progressive JPEG or a lossy WebP, and is
// decoded without. Few of them have none all the same, which shows when it is made.
func (d *Decoder) LacksCopy() bool {
	switch f := d.current.(type) {
	case *scans:
		return f.LacksCopy()
	case *wholeFormat:
		return f.copier != nil && f.copier.LacksCopy()
	}
	return false
}

// IsCopy says whether an index is a copy, which is about as large as the file. All others are small.
func IsCopy(index []byte) bool { return jpeg.IsCopy(index) || webp.IsCopy(index) }

// AppendIndex appends the index of the parsed file, reading what Decode left out. It appends nothing where none was
// asked for, where the file has none, and where one was in use, unless that is no copy and RecordCopies asks for one.
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
	return bytes.Equal(index, verified) || webp.IsCopy(index) || jpeg.IndexInterval(index) == interval
}

// MaxIndexInterval is the largest interval of an index.
const MaxIndexInterval = jpeg.MaxIndexInterval

// verified is the index of a PNG or WebP file: no more than that it decodes to its end. That of a JPEG file begins with
// another byte, a copy with 0 and 'c', of a JPEG file, or 0 and 'w'.
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
	copier copier // nil: the format has no copies
	copies bool   // that are wanted
	index  []byte
	wanted bool // an index is, by the next Parse
	noted  bool // one of the parsed file is wanted
	known  bool // it has one
	tried  bool // it was decoded
}

// A verifier is a format that need not decode what lies behind a region of a file that it decoded before. UseVerified
// tells of the parsed file that it is one; Verified reports whether Decode found so, or UseVerified told.
type verifier interface {
	format
	UseVerified()
	Verified() bool
}

// A copier is a verifier that makes copies of files that decode.
type copier interface {
	UseCopy(index []byte)
	AppendCopy(dst []byte) []byte
	LacksCopy() bool
}

// Parse implements format.
func (f *wholeFormat) Parse(src []byte) (w, h int, err error) {
	w, h, err = f.verifier.Parse(src)
	f.tried, f.noted, f.known = false, f.wanted, true
	switch {
	case f.copier != nil && webp.IsCopy(f.index):
		f.noted = false
		f.copier.UseCopy(f.index)
	case bytes.Equal(f.index, verified):
		f.UseVerified()
	default:
		f.known = false
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
	if !f.Verified() {
		return dst
	}
	if f.copies && f.copier != nil {
		if copied := f.copier.AppendCopy(dst); len(copied) > len(dst) {
			return copied
		}
	}
	if f.known {
		return dst
	}
	return append(dst, verified...)
}
