package exif

import (
	"bytes"
	"errors"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/codec/exif/exiftest"
	"github.com/feedwater-io/feedwater/pipeline/internal/budget"
)

// EXIF data that is spread over very many segments takes memory, and so time, in proportion to the file, and leaves the file as it is.
func TestManySegments(t *testing.T) {
	tiff := []byte("II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00")
	file := []byte("\xff\xd8")
	for i := range 40_000 {
		part := bytes.Repeat([]byte{'.'}, 10)
		if from := 10 * i; from < len(tiff) {
			part = tiff[from:min(from+10, len(tiff))]
		}
		file = append(append(append(file, 0xff, 0xe1, 0, byte(8+len(part))), exifMark...), part...)
	}
	before := bytes.Clone(file)
	budget.Hold(t, 8*uint64(len(file)), func() {
		if o, err := Orientation(file); o != 6 || err != nil {
			t.Errorf("orientation %d, %v", o, err)
		}
	})
	if !bytes.Equal(file, before) {
		t.Error("the file was changed")
	}
}

// Text that becomes long takes no more memory than one of them, however many there are, and all together a bounded time.
func TestManyTexts(t *testing.T) {
	few, many := exiftest.Texts(50), exiftest.Texts(100)
	budget.Hold(t, 8<<20, func() {
		if o, err := Orientation(few); o != 6 || err != nil {
			t.Errorf("orientation %d, %v", o, err)
		}
		if o, err := Orientation(many); !errors.Is(err, errTooLong) {
			t.Errorf("of 90 MiB: orientation %d, %v", o, err)
		}
	})
}
