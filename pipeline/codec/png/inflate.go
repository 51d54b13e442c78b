package png

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/adler32"
	"io"

	"github.com/klauspost/compress/flate"

	"github.com/feedwater-io/feedwater/pipeline/codec/internal/inflate"
	"github.com/feedwater-io/feedwater/pipeline/codec/internal/strip"
)

// inflater decompresses the rows. What it accepts is what Pillow accepts, which feeds zlib piece by piece, stops at the last
// row and sees of what follows only what is in the same piece.
type inflater struct {
	parts  []part
	joined []byte
	src    bytes.Reader
	flate  *inflate.Reader
	sum    hash.Hash32
	begun  bool
	all    []byte // the data
	rows   int
	size   int     // of the rows
	passes []run   // the rows of the picture
	stood  int     // how much of the data had been read before the read that brought the end of the last row
	few    [4]byte // what is read besides rows
}

// run is n rows of so many bytes, filters included.
type run struct{ bytes, n int }

// part is where a chunk's payload ends: in the compressed data, and the chunk in the file, which may end before. Empty ones behind the first have none.
type part struct {
	end, file int
	whole     bool
}

// keptParts is how many are kept for the next file: 32 MiB.
const keptParts = 2 << 20

// trim lets go of the memory of a large file.
func (d *inflater) trim() {
	d.joined = strip.Keep(d.joined)
	if cap(d.parts) > keptParts {
		d.parts = nil
	}
}

// feed is the largest piece, in bytes. Pieces do not span chunks.
const feed = 65536

// open finds the run of data chunks that begins at r.data.
func (d *inflater) open(r *reader) {
	d.parts, d.joined, d.begun = d.parts[:0], d.joined[:0], false
	d.rows, d.size, d.stood = 0, 0, 0
	d.passes = r.runs(d.passes[:0])
	var single []byte
	for at := r.data; ; {
		c, err := r.chunk(at)
		if err != nil || string(c.name) != "IDAT" && string(c.name) != "DDAT" {
			break
		}
		at = c.end()
		if c.size == 0 && len(d.parts) > 0 {
			continue // there may be millions
		}
		single = r.src[c.at:min(c.at+c.size, len(r.src))]
		if len(d.parts) == 1 {
			d.joined = append(d.joined, r.src[r.data+8:d.parts[0].file-4]...)
		}
		if len(d.parts) > 0 {
			d.joined = append(d.joined, single...)
		}
		d.parts = append(d.parts, part{max(len(d.joined), len(single)), at, at-4 <= len(r.src)})
	}
	if len(d.parts) > 1 {
		single = d.joined
	}
	d.all = single
	d.src.Reset(single)
	if d.sum == nil {
		d.sum = adler32.New()
	}
	d.sum.Reset()
}

// expansion is how many bytes one of the data becomes at most: 258 by two bits.
const expansion = 258 * 8 / 2

// tooFew says whether the data cannot become all rows, however well it is compressed. It may still end behind one of them.
func (d *inflater) tooFew() bool {
	left := expansion * len(d.all)
	for _, p := range d.passes {
		if p.n > left/p.bytes {
			return true
		}
		left -= p.n * p.bytes
	}
	return false
}

// runs appends the rows of all passes to b.
func (r *reader) runs(b []run) []run {
	for _, p := range r.passes() {
		if columns, rows := p.size(r.box.Size()); columns > 0 && rows > 0 {
			b = append(b, run{1 + r.rowBytes(columns), rows})
		}
	}
	return b
}

// upTo is how many bytes the first rows have.
func (d *inflater) upTo(rows int) (bytes int) {
	for _, p := range d.passes {
		n := min(rows, p.n)
		bytes += n * p.bytes
		rows -= n
	}
	return bytes
}

// isLast says whether the next row is the picture's last one.
func (d *inflater) isLast() bool {
	return d.upTo(d.rows+1) > d.size && d.upTo(d.rows+1) == d.upTo(d.rows+2)
}

// zlibHeader is how many bytes there are in front of the compressed data.
const zlibHeader = 2

// start reads the bytes in front of the compressed data.
func (d *inflater) start() error {
	d.begun = true
	b := d.few[:zlibHeader]
	if _, err := io.ReadFull(&d.src, b); err != nil {
		return fmt.Errorf("%w: no data", ErrTruncated)
	}
	if !isZlib([zlibHeader]byte(b)) {
		return fmt.Errorf("%w: the data begins with %x", ErrBroken, b)
	}
	if d.flate == nil {
		d.flate = inflate.NewFlate()
	}
	return d.flate.Reset(&d.src)
}

// isZlib reports whether bytes are zlib's header of deflated data without a dictionary.
func isZlib(b [zlibHeader]byte) bool {
	return b[0]&15 == 8 && b[0]>>4 <= 7 && binary.BigEndian.Uint16(b[:])%31 == 0 && b[1]&0x20 == 0
}

// next decompresses the next row into b. It returns true when the data ends right behind the row before.
func (d *inflater) next(b []byte) (ended bool, err error) {
	if !d.begun {
		if err := d.start(); err != nil {
			return false, err
		}
	}
	stood := d.position()
	n, err := io.ReadFull(d.flate, b)
	if errors.Is(err, io.ErrUnexpectedEOF) && d.isLast() && len(b)-n <= longest && d.pending(b) {
		err = nil
	}
	switch {
	case err == nil:
		d.count(b)
		if d.position() > stood {
			d.stood = stood
		}
		return false, nil
	case errors.Is(err, io.EOF) && d.rows > 0 && d.endsWithRow():
		return true, d.checkSum()
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return false, fmt.Errorf("%w: the data ends in row %d", ErrTruncated, d.rows)
	}
	return false, fmt.Errorf("%w: row %d: %w", ErrBroken, d.rows, err)
}

// count notes a row.
func (d *inflater) count(b []byte) {
	d.rows++
	d.size += len(b)
	_, _ = d.sum.Write(b) // cannot fail
}

// finish looks at what follows the last row, and returns where the chunks go on.
func (d *inflater) finish() (after int, err error) {
	if d.position() == len(d.all) && !d.asked(len(d.all)) {
		return 0, fmt.Errorf("%w: the data ends in row %d", ErrTruncated, d.rows-1)
	}
	_, err = io.ReadFull(d.flate, d.few[:1])
	ended := errors.Is(err, io.EOF)
	if _, p := d.piece(d.position() - 1); ended && p.whole && d.checkSum() == nil {
		return p.file, nil // nothing is wrong, whichever piece the last row is in
	}
	end, p := d.rowPiece()
	if ended && d.sumIn(end) {
		return p.file, d.checkSum()
	}
	var corrupt flate.CorruptInputError
	if errors.As(err, &corrupt) && d.position() <= end && !d.holds(d.size+1, end) {
		return 0, fmt.Errorf("%w: behind the last row: %w", ErrBroken, err)
	}
	return p.file, nil
}

// position is how much of the data has been read.
func (d *inflater) position() int { return int(d.src.Size()) - d.src.Len() }

func (d *inflater) checkSum() error {
	if _, err := d.src.ReadAt(d.few[:], int64(d.position())); err != nil {
		return fmt.Errorf("%w: no checksum", ErrTruncated)
	}
	if binary.BigEndian.Uint32(d.few[:]) != d.sum.Sum32() {
		return fmt.Errorf("%w: checksum of the pixels", ErrBroken)
	}
	return nil
}
