package inflate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zlib"
)

// What is read of a block whose codes have no symbols does not depend on the streams before.
func TestCodesWithoutSymbols(t *testing.T) {
	noSymbols := []string{ // of the code of lengths; of distances, behind a code of literal 0, the end and a length
		"\x05\x00\x00\x00",
		"\x0d\xc0\x01\x09\x00\x00\x00\x80\xa0\xfe\xaf\x4e\x00",
	}
	for name, c := range map[string]struct {
		open   func() *Reader
		write  func(w io.Writer) io.WriteCloser
		header string
	}{
		"flate": {NewFlate, func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 9); return f }, ""},
		"zlib":  {NewZlib, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }, "\x78\x01"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 1))
			reader := c.open()
			for n := range 400 {
				file := []byte(c.header + noSymbols[n%2])
				for range r.IntN(40) {
					file = append(file, byte(r.Uint32()))
				}
				want, wantErr := read(c.open(), file)
				got, err := read(reader, file)
				if !bytes.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Fatalf("stream %d: %d bytes and %v, alone %d and %v", n, len(got), err, len(want), wantErr)
				}
				var valid bytes.Buffer
				w := c.write(&valid)
				data := make([]byte, r.IntN(4000))
				for i := range data {
					data[i] = byte(r.IntN(1 + n%60))
				}
				if _, err := w.Write(data); err != nil || w.Close() != nil {
					t.Fatal(err)
				}
				if got, err := read(reader, valid.Bytes()); err != nil || !bytes.Equal(got, data) {
					t.Fatalf("stream %d: %d bytes and %v, not %d", n, len(got), err, len(data))
				}
			}
		})
	}
}

func read(r *Reader, stream []byte) ([]byte, error) {
	if err := r.Reset(bytes.NewReader(stream)); err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func TestNoHeader(t *testing.T) {
	if err := NewZlib().Reset(bytes.NewReader([]byte("ab"))); !errors.Is(err, zlib.ErrHeader) {
		t.Errorf("%v", err)
	}
}

func TestResetTakesNoMemory(t *testing.T) {
	for _, r := range []*Reader{NewFlate(), NewZlib()} {
		var stream bytes.Reader
		if n := testing.AllocsPerRun(100, func() {
			stream.Reset(r.nothing)
			if err := r.Reset(&stream); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}
