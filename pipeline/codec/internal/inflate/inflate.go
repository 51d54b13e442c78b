// Package inflate reads deflated data, stream after stream, so that what is read of one does not depend on those before.
package inflate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zlib"
)

// Reader is a reader of package flate or zlib that keeps its memory for the next stream. Reset gives it the first one. It is not safe for concurrent use.
type Reader struct {
	io.Reader
	resetter flate.Resetter
	nothing  []byte // a stream without data
	from     bytes.Reader
	none     [1]byte // read of nothing
}

// NewFlate returns a Reader of deflated data.
func NewFlate() *Reader {
	r := &Reader{nothing: noBytes}
	r.Reader = flate.NewReader(&r.from)
	r.resetter = r.Reader.(flate.Resetter)
	return r
}

// NewZlib returns a Reader of deflated data with zlib's header and checksum.
func NewZlib() *Reader {
	const header, checksum = 0x7801, 1
	r := &Reader{nothing: binary.BigEndian.AppendUint32(append(binary.BigEndian.AppendUint16(nil, header), noBytes...), checksum)}
	r.from.Reset(r.nothing)
	z, err := zlib.NewReader(&r.from)
	if err != nil {
		panic("inflate: " + err.Error()) // it is a stream
	}
	r.Reader, r.resetter = z, z.(flate.Resetter)
	return r
}

// noBytes is deflated data of no bytes, in a block whose code has fifteen lengths of copies, in front of the end's code of fifteen bits, and the largest
// distance. By such tables hardly any bits decode but to a copy from before the beginning.
var noBytes = []byte{
	0x7d, 0xfd, 0x01, 0x82, 0x24, 0x49, 0x92, 0x24, 0x49, 0xfe, 0xff, 0xd7, 0x07, 0x48, 0x2c, 0x6a,
	0x1e, 0x59, 0x3d, 0x7b, 0x2f, 0x81, 0xff, 0x1f,
}

// Reset goes on with another stream. Where a code of a block has no symbols package flate decodes by the tables that it had before, those of the last
// stream: they are always noBytes'. Reset takes no memory. The error is that of the stream's header.
func (r *Reader) Reset(stream io.Reader) error {
	r.from.Reset(r.nothing)
	if err := r.resetter.Reset(&r.from, nil); err != nil {
		return err
	}
	if _, err := r.Read(r.none[:]); !errors.Is(err, io.EOF) {
		return fmt.Errorf("data of no bytes: %w", err)
	}
	return r.resetter.Reset(stream, nil)
}
