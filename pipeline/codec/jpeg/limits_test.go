package jpeg

import (
	"bytes"
	"errors"
	"image"
	"slices"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// bomb is a progressive file of a size with many scans that each visit all blocks of the first component and take a few bytes.
func bomb(w, h, scans int) []byte {
	b := sized(jpegtest.Encode(jpegtest.Photograph(1, 1, 16, 16), jpegtest.Options{Progressive: jpegtest.Script(3)[:2]}), mSOF2, w, h)
	b = b[:len(b)-2]
	b = append(b, "\xff\xc4\x00\x14\x10\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xe0"...) // one code: 14 bits of blocks follow
	end := []byte{}
	for range w*h/64/32767*15/8 + 3 {
		end = append(end, 0x7e)
	}
	for range scans {
		b = append(b, "\xff\xda\x00\x08\x01\x01\x00\x06\x3f\x21"...)
		b = append(b, end...)
	}
	return append(b, eoi...)
}

// again is a sequential 4:4:4 file of a size whose three components have a scan each, and the first one more of them.
func again(w, h, more int) []byte {
	b := sized(jpegtest.Encode(jpegtest.Photograph(1, 1, 16, 16), jpegtest.Options{Scans: [][]int{{0}, {1}, {2}}}), mSOF0, w, h)
	first := b[find(b, 0xda, 0).start:find(b, 0xda, 0).end]
	return slices.Concat(b[:len(b)-len(eoi)], bytes.Repeat(first, more), eoi)
}

// restarting is a file with a restart interval. There are no markers in its data.
func restarting(b []byte, interval int) []byte {
	return insert(b, spans(b)[0].start, []byte{0xff, mDRI, 0, 4, byte(interval >> 8), byte(interval)})
}

// hiding is a file with a comment in front of its second scan, which has what looks like the picture's end.
func hiding(b []byte) []byte {
	return insert(b, find(b, 0xda, 1).start, []byte{0xff, 0xfe, 0, 4, 0xff, 0xd9})
}

// sized is a file whose header claims a size.
func sized(b []byte, frame byte, w, h int) []byte {
	return overwrite(b, find(b, frame, 0).start+5, byte(h>>8), byte(h), byte(w>>8), byte(w))
}

// Scans without end are refused before anything of the picture's size, or of the scans' number, is allocated.
func TestScansAreLimited(t *testing.T) {
	small := jpegtest.Photograph(1, 1, 16, 16)
	baseline := jpegtest.Encode(small, jpegtest.Options{Sampling: jpegtest.S444})
	progressive := jpegtest.Encode(small, jpegtest.Options{Sampling: jpegtest.S420, Progressive: jpegtest.Script(3)})
	fine := jpegtest.Encode(small, jpegtest.Options{Sampling: jpegtest.S444, Progressive: jpegtest.Script(3)})
	d := NewDecoder(kernel.Levels()[0])
	for _, c := range []struct {
		name string
		file []byte
		l    Limits
		ok   bool
	}{
		{"10,000 scans", bomb(16, 16, 10_000), Limits{}, false},
		{"1,000 scans", bomb(16, 16, 998), Limits{}, true},
		{"1,001 scans", bomb(16, 16, 999), Limits{}, false},
		{"sequential scans", again(40, 40, 1200), Limits{}, false},
		{"3 sequential scans of 178 megapixels", again(13377, 13377, 0), Limits{}, true},
		{"64 sequential scans of 16 megapixels", again(4096, 4096, 61), Limits{}, true},
		{"65 sequential scans of 16 megapixels", again(4096, 4096, 62), Limits{}, false},
		{"10 scans, 9 allowed", bomb(16, 16, 8), Limits{Scans: 9}, false},
		{"10 scans, 10 allowed", bomb(16, 16, 8), Limits{Scans: 10}, true},
		{"10 scans and what looks like more behind the end", append(bomb(16, 16, 8), bytes.Repeat([]byte{0xff, 0xda}, 1000)...), Limits{}, true},
		{"500 scans behind what looks like the end", hiding(bomb(16, 16, 498)), Limits{Scans: 499}, false},
		{"as many, allowed", hiding(bomb(16, 16, 498)), Limits{Scans: 500}, true},
		{"600 scans of 16 megapixels", bomb(4000, 4000, 600), Limits{}, false},
		{"530 scans of 16 megapixels", bomb(4000, 4000, 530), Limits{}, true},
		{"300 scans of 178 megapixels", bomb(13377, 13377, 300), Limits{}, false},
		{"blocks", bomb(800, 800, 8), Limits{ScanBlocks: 3*10_000 + 9*10_000}, true},
		{"a block too many", bomb(800, 800, 8), Limits{ScanBlocks: 3*10_000 + 9*10_000 - 1}, false},
		{"sequential blocks", again(800, 800, 2), Limits{ScanBlocks: 8 * 5 * 10_000}, true},
		{"a sequential block too many", again(800, 800, 2), Limits{ScanBlocks: 8*5*10_000 - 1}, false},
		{"restarts", restarting(bomb(800, 800, 8), 100), Limits{ScanBlocks: 12*10_000 + 6*10*99}, true},
		{"a restart too many", restarting(bomb(800, 800, 8), 100), Limits{ScanBlocks: 12*10_000 + 6*10*99 - 1}, false},
		{"sequential restarts", restarting(again(800, 800, 2), 1), Limits{ScanBlocks: (8 + 6) * 5 * 10_000}, true},
		{"84 scans of 64 megapixels", bomb(8000, 8000, 82), Limits{}, true},
		{"84 scans of 64 megapixels, a restart at each block", restarting(bomb(8000, 8000, 82), 1), Limits{}, false},
		{"128 scans of 64 megapixels, a restart at each row", restarting(bomb(8000, 8000, 122), 1000), Limits{}, true},
		{"128 scans of 64 megapixels, a restart at each eighth block", restarting(bomb(8000, 8000, 122), 8), Limits{}, false},
		{"a baseline file of 178 megapixels, a restart at each block", restarting(sized(baseline, mSOF0, 13377, 13377), 1), Limits{}, true},
		{"a progressive file of 169 megapixels, a restart at each block", restarting(sized(progressive, mSOF2, 13000, 13000), 1), Limits{}, true},
		{"a progressive 4:4:4 file of 80 megapixels, a restart at each block", restarting(sized(fine, mSOF2, 8944, 8944), 1), Limits{}, true},
		{"3 sequential scans of 64 megapixels, a restart at each block", restarting(again(8000, 8000, 0), 1), Limits{}, true},
	} {
		_, _, err := d.Parse(c.file, c.l)
		if c.ok != (err == nil) || !c.ok && !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", c.name, err)
		}
		if n := cap(d.parser.scans); !c.ok && n > 700 {
			t.Errorf("%s: %d scans kept", c.name, n)
		}
		d.parser.scans = nil
	}
	fresh, file := NewDecoder(kernel.Levels()[0]), bomb(16, 16, 10_000)
	if _, _, err := fresh.Parse(file, Limits{}); !errors.Is(err, ErrLimit) || cap(fresh.parser.scans)+cap(fresh.coder.segment.data) > 0 {
		t.Errorf("%v, %d scans and %d bytes held", err, cap(fresh.parser.scans), cap(fresh.coder.segment.data))
	}
}

// A file that claims much and has little is decoded in the region alone.
func TestBombInSmall(t *testing.T) {
	d := NewDecoder(kernel.Levels()[0])
	if _, _, err := d.Parse(bomb(13377, 13377, 3), Limits{}); err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(image.Rect(9000, 60, 9100, 120), nowhere{}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if g := &d.several.grids[i]; cap(g.b) > 1000 || cap(g.sent) > 1<<17 {
			t.Errorf("%d and %d blocks held", cap(g.b), cap(g.sent))
		}
	}
}

// A large picture's memory is not kept.
func TestLargeIsNotKept(t *testing.T) {
	d := NewDecoder(kernel.Levels()[0])
	if _, _, err := d.Parse(bomb(4800, 4000, 1), Limits{}); err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(image.Rect(0, 0, 4800, 4000), nowhere{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Parse(nil, Limits{}); err == nil {
		t.Fatal("parsed nothing")
	}
	for i := range 3 {
		if n := cap(d.several.grids[i].b); n > keptBlocks {
			t.Errorf("%d blocks kept", n)
		}
	}
}

// Release gives back what only a huge file needs: coefficients of several scans, and a copy of the data.
func TestReleaseTrims(t *testing.T) {
	d := NewDecoder(kernel.Levels()[0])
	small := jpegtest.Encode(jpegtest.Photograph(1, 1, 40, 40), jpegtest.Options{Progressive: jpegtest.Script(3)})
	long := append(jpegtest.Encode(jpegtest.Photograph(1, 1, 40, 40), jpegtest.Options{}), make([]byte, keptBytes)...)
	for name, file := range map[string][]byte{"large": bomb(4200, 4200, 2), "long": long, "small": small} {
		w, h, err := d.Parse(file, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Decode(image.Rect(0, 0, w, h), nowhere{}); err != nil {
			t.Fatal(err)
		}
		grids, data := cap(d.several.grids[0].b), len(d.coder.segment.data)
		d.Release()
		if n := cap(d.several.grids[0].b); n > keptBlocks || grids <= keptBlocks && n < grids {
			t.Errorf("%s: %d blocks are kept of %d", name, n, grids)
		}
		if n := len(d.coder.segment.data); n > keptBytes || data <= keptBytes && n < data {
			t.Errorf("%s: %d bytes are kept of %d", name, n, data)
		}
	}
}

// What a large picture needed is let go of, and what a usual one needed is kept.
func TestTrim(t *testing.T) {
	var m multiscan
	large, usual := &m.grids[0], &m.grids[1]
	large.b, large.sent = make([]kernel.Block, keptBlocks+1), make([]uint64, 16*keptBlocks+1)
	usual.b, usual.sent = make([]kernel.Block, keptBlocks), make([]uint64, 16*keptBlocks)
	m.trim()
	if large.b != nil || large.sent != nil {
		t.Errorf("%d blocks and notes of %d are kept of a large picture", cap(large.b), cap(large.sent))
	}
	if usual.b == nil || usual.sent == nil {
		t.Errorf("%d blocks and notes of %d are kept of a usual picture", cap(usual.b), cap(usual.sent))
	}
}
