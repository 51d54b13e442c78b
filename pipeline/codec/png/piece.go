package png

import (
	"bytes"
	"io"
	"sort"

	"github.com/klauspost/compress/flate"
)

// Pillow reads data piece by piece and stops at the last row: which piece that is in decides what is seen behind it.

// longest is how many bytes a symbol stands for.
const longest = 258

// pending reads the last row where data that ends too early holds it to the last bit: decompression looks for bits behind it, and so misses a symbol.
func (d *inflater) pending(b []byte) bool {
	want := d.size + len(b)
	if becomes(d.all[zlibHeader:], want) < want {
		return false
	}
	var some [8]byte
	again := flate.NewReader(io.MultiReader(bytes.NewReader(d.all[zlibHeader:]), bytes.NewReader(some[:])))
	if _, err := io.CopyN(io.Discard, again, int64(d.size)); err != nil {
		return false
	}
	_, err := io.ReadFull(again, b)
	return err == nil
}

// asked says whether Pillow asks for the last row of the data up to the end of a piece, which holds it. It asks zlib for a row while zlib has not taken all of a piece, and zlib
// takes it up to the first symbol that it has no room for: so it asks for a row in front of which a byte more than the rows before was whole
// without the last byte, and for the first one of each piece.
func (d *inflater) asked(end int) bool {
	left := againBytes
	for row := d.rows - 1; row > 0; row-- {
		size := d.upTo(row)
		if becomes(d.all[zlibHeader:end-1], size+1) > size {
			return true
		}
		if end = d.pieceBegin(end - 1); end <= zlibHeader || becomes(d.all[zlibHeader:end], size) < size {
			return false
		}
		if left -= countBytes + end; left < 0 {
			return true
		}
	}
	return true
}

// pieceBegin returns where the piece of a byte of the data begins.
func (d *inflater) pieceBegin(at int) int {
	i := sort.Search(len(d.parts)-1, func(i int) bool { return at < d.parts[i].end })
	begin := 0
	if i > 0 {
		begin = d.parts[i-1].end
	}
	return begin + (at-begin)/feed*feed
}

// piece returns where the piece of a byte of the data ends, and its chunk.
func (d *inflater) piece(at int) (end int, p part) {
	i, begin := sort.Search(len(d.parts)-1, func(i int) bool { return at < d.parts[i].end }), 0
	if i > 0 {
		begin = d.parts[i-1].end
	}
	p = d.parts[i]
	return min(p.end, begin+((at-begin)/feed+1)*feed), p
}

// againBytes bounds what is counted again, and read for it; countBytes stands for the work of beginning.
const (
	againBytes = 8 << 20
	countBytes = 4 << 10
)

// rowPiece returns where the piece ends in which Pillow gets the last row, and its chunk. Decompression runs ahead of the rows, so what the data up
// to the end of each piece becomes is counted. Where that would take too long it is the piece that was read last.
func (d *inflater) rowPiece() (end int, p part) {
	last := d.position() - 1
	end, p = d.piece(max(d.stood-1, 0))
	for left := againBytes; end < len(d.all); end, p = d.piece(end) {
		if left -= countBytes + d.size + end; left < 0 {
			return d.piece(last)
		}
		if d.holds(d.size, end) && d.asked(end) {
			break
		}
	}
	return end, p
}

// holds says whether the data up to a place becomes n bytes at least, false where it would take too long to find out.
func (d *inflater) holds(n, end int) bool {
	return end >= zlibHeader && n+end <= againBytes && becomes(d.all[zlibHeader:end], n) >= n
}

// endsWithRow says whether the end of the data, its checksum included, lies in the piece in which the last row became complete.
func (d *inflater) endsWithRow() bool {
	end, _ := d.rowPiece()
	return d.sumIn(end)
}

// sumIn says whether the checksum behind the data, which was read to its end, lies before a place.
func (d *inflater) sumIn(end int) bool { return d.position()+4 <= end }
