package jpeg

import (
	"bytes"
	"encoding/binary"
	"image"
)

// The index of a progressive file is a copy of it: a sequential file with the same coefficients, which decodes to the same pixels, with its own index. As
// bytes it is
//
//	copyMark
//	uvarint the scans, uvarint the blocks that Limits count of the progressive file
//	uvarint bytes of the index of the sequential file, that, and the file
//
// It is about as large as the file.
const copyMark = "\x00c"

// IsCopy reports whether an index is the copy of a progressive file.
func IsCopy(index []byte) bool { return bytes.HasPrefix(index, []byte(copyMark)) }

// openCopy gives the sequential file of a copy and its index. The verdict on a file whose scans are over the limits is not the copy's.
func openCopy(index []byte, l Limits) (file, marks []byte, ok bool) {
	if !IsCopy(index) {
		return nil, index, false
	}
	scans, b := uvarint(index[len(copyMark):])
	blocks, b := uvarint(b)
	n, b := uvarint(b)
	if n > uint64(len(b)) || scans > uint64(l.Scans) || blocks > uint64(l.ScanBlocks) { //nolint:gosec // limits are not negative
		return nil, nil, false
	}
	return b[n:], b[:n], true
}

// LacksCopy reports whether the parsed file may have a copy, and is decoded without.
func (d *Decoder) LacksCopy() bool {
	return d.parsed && len(d.index.marks) == 0 && d.parser.frame.canRewrite()
}

// copier is what makes copies.
type copier struct {
	rewriter
	file  []byte
	check *Decoder // makes the index of the sequential file
}

// appendCopy appends the copy of the parsed file, with marks every so many blocks. It appends nothing where the file's coefficients are none that a sequential
// file has.
func (d *Decoder) appendCopy(dst []byte, interval int) []byte {
	if d.copier == nil {
		d.copier = &copier{check: NewDecoder(d.level)}
	}
	c, p := d.copier, &d.parser
	c.file = c.rewrite(c.file[:0], p, &d.coder)
	defer c.release()
	if len(c.file) == 0 {
		return dst
	}
	if _, _, err := c.check.Parse(c.file, Limits{}); err != nil {
		return dst
	}
	c.check.Record(interval)
	marks := c.check.AppendIndex(nil)
	if len(marks) == 0 {
		return dst
	}
	dst = append(dst, copyMark...)
	dst = binary.AppendUvarint(dst, uint64(p.most))   //nolint:gosec // a count
	dst = binary.AppendUvarint(dst, uint64(p.blocks)) //nolint:gosec // a count
	dst = binary.AppendUvarint(dst, uint64(len(marks)))
	return append(append(dst, marks...), c.file...)
}

// release lets go of what only a large file needs.
func (c *copier) release() {
	c.check.Release()
	c.source.trim()
	if cap(c.file) > keptBytes {
		c.file = nil
	}
}

// fullMCUs are all MCUs of a frame.
func fullMCUs(f *frame) image.Rectangle { return image.Rect(0, 0, f.mcusX, f.mcusY) }
