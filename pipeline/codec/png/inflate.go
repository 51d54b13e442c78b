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

	"github.com/feedwater-io/feedwater/pipeline/codec/internal/strip"
)

// inflater decompresses the rows. What it accepts is what Pillow accepts, which feeds zlib piece by piece, stops at the last
// row and sees of what follows only what is in the same piece.
type inflater struct {
	parts  []part
	joined []byte
	src    bytes.Reader
	flate  io.ReadCloser
	sum    hash.Hash32
	begun  bool
	rows   int
}

// part is where a chunk's payload ends: in the compressed data, and the chunk in the file. Empty ones behind the first have none.
type part struct{ end, file int }

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
	d.parts, d.joined, d.rows, d.begun = d.parts[:0], d.joined[:0], 0, false
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
		d.parts = append(d.parts, part{max(len(d.joined), len(single)), at})
	}
	if len(d.parts) > 1 {
		single = d.joined
	}
	d.src.Reset(single)
	if d.sum == nil {
		d.sum = adler32.New()
	}
	d.sum.Reset()
}

// start reads the two bytes in front of the compressed data.
func (d *inflater) start() error {
	var b [2]byte
	d.begun = true
	if _, err := io.ReadFull(&d.src, b[:]); err != nil {
		return fmt.Errorf("%w: no data", ErrTruncated)
	}
	if b[0]&15 != 8 || b[0]>>4 > 7 || binary.BigEndian.Uint16(b[:])%31 != 0 || b[1]&0x20 != 0 {
		return fmt.Errorf("%w: the data begins with %x", ErrBroken, b)
	}
	if d.flate == nil {
		d.flate = flate.NewReader(&d.src)
		return nil
	}
	return d.flate.(flate.Resetter).Reset(&d.src, nil)
}

// row decompresses one row. It returns true when the data ends right behind the row before.
func (d *inflater) row(b []byte) (ended bool, err error) {
	if !d.begun {
		if err := d.start(); err != nil {
			return false, err
		}
	}
	_, err = io.ReadFull(d.flate, b)
	switch {
	case err == nil:
		d.rows++
		_, _ = d.sum.Write(b) // cannot fail
		return false, nil
	case errors.Is(err, io.EOF) && d.rows > 0 && d.sumInPiece():
		return true, d.checkSum()
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return false, fmt.Errorf("%w: the data ends in row %d", ErrTruncated, d.rows)
	}
	return false, fmt.Errorf("%w: row %d: %w", ErrBroken, d.rows, err)
}

// finish looks at what follows the last row, and returns where the chunks go on.
func (d *inflater) finish() (after int, err error) {
	var b [1]byte
	if _, err = io.ReadFull(d.flate, b[:]); errors.Is(err, io.EOF) && d.sumInPiece() {
		if err := d.checkSum(); err != nil {
			return 0, err
		}
	}
	var corrupt flate.CorruptInputError
	if errors.As(err, &corrupt) {
		return 0, fmt.Errorf("%w: behind the last row: %w", ErrBroken, err)
	}
	_, p := d.piece()
	return p.file, nil
}

// piece returns where the piece that was read last ends, and its chunk.
func (d *inflater) piece() (end int, p part) {
	last := int(d.src.Size()) - d.src.Len() - 1
	begin := 0
	for _, p = range d.parts {
		if last < p.end {
			break
		}
		begin = p.end
	}
	return min(p.end, begin+((last-begin)/feed+1)*feed), p
}

// sumInPiece says whether the checksum behind the data, which was read to its end, is in the last piece.
func (d *inflater) sumInPiece() bool {
	end, _ := d.piece()
	return int(d.src.Size())-d.src.Len()+4 <= end
}

func (d *inflater) checkSum() error {
	var b [4]byte
	if _, err := d.src.ReadAt(b[:], d.src.Size()-int64(d.src.Len())); err != nil {
		return fmt.Errorf("%w: no checksum", ErrTruncated)
	}
	if binary.BigEndian.Uint32(b[:]) != d.sum.Sum32() {
		return fmt.Errorf("%w: checksum of the pixels", ErrBroken)
	}
	return nil
}
