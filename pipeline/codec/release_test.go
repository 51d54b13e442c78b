package codec

import (
	"bytes"
	"image"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// released decodes a copy of a file, with its index or one to make, and releases it. It returns where the copy was.
func released(d *Decoder, file, index []byte, interval int) weak.Pointer[byte] {
	file = bytes.Clone(file)
	d.UseIndex(index, interval)
	if w, h, err := d.Parse(file, DefaultLimits()); err == nil {
		_ = d.Decode(image.Rect(0, 0, w, h), nowhere{}) // some are damaged
		_ = d.AppendIndex(nil)
	}
	d.Release()
	return weak.Make(&file[0])
}

// A released file is held no longer, nor can anything be decoded of it.
func TestRelease(t *testing.T) {
	m := jpegtest.Photograph(1, 1, 90, 70)
	whole, index := jpegtest.Encode(m, jpegtest.Options{}), []byte(nil)
	d := NewDecoder(kernel.Levels()[0])
	d.UseIndex(nil, 1)
	if _, _, err := d.Parse(whole, DefaultLimits()); err != nil {
		t.Fatal(err)
	}
	if index = d.AppendIndex(nil); len(index) == 0 {
		t.Fatal("no index")
	}
	files := map[string][]byte{
		"jpeg": whole, "jpeg indexed": whole, "jpeg marked": whole, "jpeg short": whole[:len(whole)/2],
		"jpeg progressive": jpegtest.Encode(m, jpegtest.Options{Progressive: jpegtest.Script(3)}),
		"jpeg scans":       jpegtest.Encode(m, jpegtest.Options{Scans: [][]int{{0}, {1, 2}}}),
	}
	c, taken := archived(t), map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		kind, _, _ := strings.Cut(name, "-")
		if taken[kind]++; taken[kind]%20 == 1 {
			files[name] = c.files[name]
		}
	}
	held, decoders := map[string]weak.Pointer[byte]{}, []*Decoder{d}
	for name, b := range files {
		d := NewDecoder(kernel.Levels()[0])
		switch name {
		case "jpeg indexed":
			held[name] = released(d, b, index, 1)
		case "jpeg marked":
			held[name] = released(d, b, nil, 1)
		default:
			held[name] = released(d, b, nil, 0)
		}
		if d.Decode(image.Rect(0, 0, 1, 1), nowhere{}) == nil || len(d.AppendIndex(nil)) > 0 {
			t.Errorf("%s: decoded once it was released", name)
		}
		decoders = append(decoders, d)
	}
	runtime.GC()
	for name, at := range held {
		if at.Value() != nil {
			t.Errorf("%s is held", name)
		}
	}
	if n := testing.AllocsPerRun(10, d.Release); n != 0 {
		t.Errorf("%v allocations", n)
	}
	runtime.KeepAlive(decoders)
}
