package png

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/adler32"
	"io"
	"sort"

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
	all    []byte        // the data
	begin  bytes.Reader  // of it, as far as again reads
	again  io.ReadCloser // decompresses it once more, nil until that is asked for
	rows   int
	size   int // of the rows
	stood  int // how much of the data had been read before the read that brought the end of the last row
}

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
func (d *inflater) tooFew(r *reader) bool {
	left := expansion * len(d.all)
	for _, p := range r.passes() {
		columns, rows := p.size(r.box.Size())
		if columns <= 0 || rows <= 0 {
			continue
		}
		row := 1 + r.rowBytes(columns)
		if rows > left/row {
			return true
		}
		left -= rows * row
	}
	return false
}

// zlibHeader is how many bytes there are in front of the compressed data.
const zlibHeader = 2

// start reads the bytes in front of the compressed data.
func (d *inflater) start() error {
	var b [zlibHeader]byte
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
	stood := d.position()
	_, err = io.ReadFull(d.flate, b)
	switch {
	case err == nil:
		d.rows++
		d.size += len(b)
		if d.position() > stood {
			d.stood = stood
		}
		_, _ = d.sum.Write(b) // cannot fail
		return false, nil
	case errors.Is(err, io.EOF) && d.rows > 0 && d.endsWithRow():
		return true, d.checkSum()
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return false, fmt.Errorf("%w: the data ends in row %d", ErrTruncated, d.rows)
	}
	return false, fmt.Errorf("%w: row %d: %w", ErrBroken, d.rows, err)
}

// finish looks at what follows the last row, and returns where the chunks go on.
func (d *inflater) finish() (after int, err error) {
	var b [1]byte
	_, err = io.ReadFull(d.flate, b[:])
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

// piece returns where the piece of a byte of the data ends, and its chunk.
func (d *inflater) piece(at int) (end int, p part) {
	i, begin := sort.Search(len(d.parts)-1, func(i int) bool { return at < d.parts[i].end }), 0
	if i > 0 {
		begin = d.parts[i-1].end
	}
	p = d.parts[i]
	return min(p.end, begin+((at-begin)/feed+1)*feed), p
}

// againBytes bounds what is decompressed again, and read for it.
const againBytes = 8 << 20

// rowPiece returns where the piece ends in which the last row became complete, and its chunk. Decompression runs ahead of the rows: where it
// came into another piece since it last stood, what the data up to the end of each holds is found out. Where that would take too long it is the last one.
func (d *inflater) rowPiece() (end int, p part) {
	last := d.position() - 1
	end, p = d.piece(max(d.stood-1, 0))
	for left := againBytes; last >= end; end, p = d.piece(end) {
		if left -= len(anything) + d.size + end; left < 0 {
			return d.piece(last)
		}
		if d.holds(d.size, end) {
			break
		}
	}
	return end, p
}

// anything stands for what was there before the data, so that no distance is too far back.
var anything [32 << 10]byte

// holds says whether the data up to a place becomes n bytes at least, false where it would take too long to find out. Distances may be too far back: zlib asks
// only when there is room for what they bring.
func (d *inflater) holds(n, end int) bool {
	if end < zlibHeader || n+end > againBytes {
		return false
	}
	d.begin.Reset(d.all[zlibHeader:end])
	if d.again == nil {
		d.again = flate.NewReaderDict(&d.begin, anything[:])
	} else if d.again.(flate.Resetter).Reset(&d.begin, anything[:]) != nil {
		return false
	}
	got, _ := io.CopyN(io.Discard, d.again, int64(n))
	return int(got) == n
}

// endsWithRow says whether the end of the data, its checksum included, lies in the piece in which the last row became complete.
func (d *inflater) endsWithRow() bool {
	end, _ := d.rowPiece()
	return d.sumIn(end)
}

// sumIn says whether the checksum behind the data, which was read to its end, lies before a place.
func (d *inflater) sumIn(end int) bool { return d.position()+4 <= end }

func (d *inflater) checkSum() error {
	var b [4]byte
	if _, err := d.src.ReadAt(b[:], int64(d.position())); err != nil {
		return fmt.Errorf("%w: no checksum", ErrTruncated)
	}
	if binary.BigEndian.Uint32(b[:]) != d.sum.Sum32() {
		return fmt.Errorf("%w: checksum of the pixels", ErrBroken)
	}
	return nil
}
