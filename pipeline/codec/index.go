package codec

import (
	"bytes"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg"
	"github.com/feedwater-io/feedwater/pipeline/codec/png"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// UseIndex is about the next Parse, or ParseUpright, alone. index is what AppendIndex once made of the very same bytes: then Decode skips what
// lies outside its region. Where it is empty, or makes no sense, Decode notes one on its way, for JPEG files with a mark every interval × 8 columns,
// for AppendIndex; an interval of 0 says not to. Sequential JPEG files of one scan have an index, and PNG files that are in order; others do not.
func (d *Decoder) UseIndex(index []byte, interval int) {
	d.jpeg.index, d.jpeg.interval = index, interval
	d.png.index, d.png.wanted = index, interval > 0
}

// AppendIndex appends the index of the parsed file, reading what Decode left out. It appends nothing where none was asked for, where
// one was in use, and where the file has none.
func (d *Decoder) AppendIndex(dst []byte) []byte {
	switch d.current {
	case format(d.jpeg):
		return d.jpeg.AppendIndex(dst)
	case format(d.png):
		return d.png.appendIndex(dst)
	}
	return dst
}

// IndexedFormats lists those that have files with an index.
func IndexedFormats() []string { return []string{"jpeg", "png"} }

// IsIndexOf says whether an index, of a file of any format, is one that AppendIndex makes with the interval.
func IsIndexOf(index []byte, interval int) bool {
	return bytes.Equal(index, verified) || jpeg.IndexInterval(index) == interval
}

// MaxIndexInterval is the largest interval of an index.
const MaxIndexInterval = jpeg.MaxIndexInterval

// verified is the index of a PNG file: no more than that its bytes are in order. The index of a JPEG file never begins with 0.
var verified = []byte{0, 'p'}

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

// chunks is the PNG decoder, and what the next Parse knows of an index.
type chunks struct {
	*png.Decoder
	index  []byte
	wanted bool // by the next Parse
	noted  bool // an index of the parsed file is wanted
	tried  bool // the parsed file was decoded
}

// Parse implements format.
func (c *chunks) Parse(src []byte) (w, h int, err error) {
	w, h, err = c.Decoder.Parse(src)
	known := bytes.Equal(c.index, verified)
	c.tried, c.noted = false, c.wanted && !known
	if err == nil && known {
		c.UseVerified()
	}
	return w, h, err
}

// Decode implements format.
func (c *chunks) Decode(r image.Rectangle, sink pixel.Sink) error {
	c.tried = true
	return c.Decoder.Decode(r, sink)
}

// appendIndex is AppendIndex.
func (c *chunks) appendIndex(dst []byte) []byte {
	if !c.noted {
		return dst
	}
	c.noted = false
	if !c.tried {
		_ = c.Decode(image.Rect(0, 0, 1, 1), nowhere{}) // what is wrong is told by Verified
	}
	if c.Verified() {
		dst = append(dst, verified...)
	}
	return dst
}
