package png

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"os"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// TestMissingBytes compares with what Pillow says of files whose data lacks its last bytes, or is damaged there: testdata/cut.py says how the table was made. With
// FEEDWATER_PNG_CUT set it is another one, of files that the script drew by another seed.
func TestMissingBytes(t *testing.T) {
	name := "testdata/cut.txt"
	if other := os.Getenv("FEEDWATER_PNG_CUT"); other != "" {
		name = other
	}
	table, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	d, files, taken := NewDecoder(kernel.Levels()[0]), 0, 0
	for line := range strings.Lines(string(table)) {
		columns := strings.Fields(line)
		if columns[0] == "#" {
			continue
		}
		whole, err := base64.StdEncoding.DecodeString(columns[0])
		if err != nil {
			t.Fatal(err)
		}
		if len(columns) == 2 {
			files++
			if err := decodes(d, whole); (err == nil) != (columns[1] == "+") {
				t.Errorf("damaged: %v, Pillow: %s; of %s", err, columns[1], columns[0])
			}
			continue
		}
		for kind, make := range []func([]byte, int) []byte{ended, shortened} {
			for missing := range columns[1+kind] {
				want := columns[1+kind][missing] == '+'
				if files++; want {
					taken++
				}
				if err := decodes(d, make(whole, missing)); (err == nil) != want {
					t.Errorf("kind %d, %d bytes missing: %v, Pillow takes it: %t; of %s", kind, missing, err, want, columns[0])
				}
			}
		}
	}
	if files < 10_000 || taken < 1000 || files-taken < 1000 {
		t.Errorf("%d files, %d taken: too few to say anything", files, taken)
	}
}

func decodes(d *Decoder, file []byte) error {
	w, h, err := d.Parse(file)
	if err != nil {
		return err
	}
	return d.Decode(image.Rect(0, 0, w, h), nowhere{})
}

// ended is a file that ends amid its data.
func ended(whole []byte, missing int) []byte { return whole[:len(whole)-4-missing] }

// shortened is a file whose chunks of data are shorter, with an end behind them.
func shortened(whole []byte, missing int) []byte {
	const header = 33
	var parts [][]byte
	for at := header; at < len(whole); {
		n := int(binary.BigEndian.Uint32(whole[at:]))
		parts = append(parts, whole[at+8:at+8+n])
		at += 12 + n
	}
	for missing > 0 && len(parts) > 0 {
		last := parts[len(parts)-1]
		n := min(missing, len(last))
		missing -= n
		if parts = parts[:len(parts)-1]; n < len(last) {
			parts = append(parts, last[:len(last)-n])
		}
	}
	b := bytes.Clone(whole[:header])
	for _, p := range parts {
		b = append(b, chunkOf("IDAT", p)...)
	}
	return append(b, chunkOf("IEND", nil)...)
}
