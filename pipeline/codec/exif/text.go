package exif

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/feedwater-io/feedwater/pipeline/codec/internal/inflate"
)

// How long compressed text may become, each and together, in bytes.
const (
	maxText  = 1 << 20
	maxTexts = 64 << 20
)

var errTooLong = fmt.Errorf("%w: compressed text of more than 1 MiB, or 64 MiB together", ErrMetadata)

// texts decompresses text. It keeps one at a time: a file may have thousands, of which the last one counts.
type texts struct {
	from  bytes.Reader
	zlib  *inflate.Reader
	text  bytes.Buffer
	total int
}

// expand decompresses data into t.text. Data that ends too early gives what it holds; other damage is an error, and so is text that is too long.
func (t *texts) expand(data []byte) (err error) {
	t.text.Reset()
	t.from.Reset(data)
	if t.zlib == nil {
		t.zlib = inflate.NewZlib()
	}
	if err = t.zlib.Reset(&t.from); err == nil {
		_, err = t.text.ReadFrom(io.LimitReader(t.zlib, maxText+1))
	}
	if t.total += t.text.Len(); t.text.Len() > maxText || t.total > maxTexts {
		return errTooLong
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// check expands data, and returns it as a value that is expanded once more when it is asked for.
func (t *texts) check(data []byte) (value, error) {
	if err := t.expand(data); err != nil {
		return value{}, err
	}
	return value{data: data, there: true, text: true, packed: true, valid: utf8.Valid(t.text.Bytes())}, nil
}

// content is the bytes of a value, good until the next call.
func (t *texts) content(v value) []byte {
	if !v.packed {
		return v.data
	}
	t.total = 0
	_ = t.expand(v.data) // as check did
	return t.text.Bytes()
}
