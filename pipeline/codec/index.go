package codec

import "github.com/feedwater-io/feedwater/pipeline/codec/jpeg"

// UseIndex is about the next Parse, or ParseUpright, alone. index is what AppendIndex once made of the very same bytes: then Decode skips what
// lies outside its region. Where it is empty, or makes no sense, Decode notes one on its way, with a mark every interval × 8 columns, for AppendIndex; an
// interval of 0 says not to. Sequential JPEG files of one scan have an index, others do not.
func (d *Decoder) UseIndex(index []byte, interval int) {
	d.jpeg.index, d.jpeg.interval = index, interval
}

// AppendIndex appends the index of the parsed file, reading what Decode left out. It appends nothing where none was asked for, where
// one was in use, and where the file has none.
func (d *Decoder) AppendIndex(dst []byte) []byte {
	if d.current != format(d.jpeg) {
		return dst
	}
	return d.jpeg.AppendIndex(dst)
}

// IndexInterval is the interval that an index was made with.
func IndexInterval(index []byte) int { return jpeg.IndexInterval(index) }

// MaxIndexInterval is the largest interval of an index.
const MaxIndexInterval = jpeg.MaxIndexInterval

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
