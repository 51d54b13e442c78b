package jpeg

import (
	"image"
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/budget"
	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// fuzzSeeds are small files of all layouts.
func fuzzSeeds(f *testing.F) {
	for i, name := range inOrder(samplings) {
		m := jpegtest.Photograph(uint64(i), i, 20+i, 40-i)
		o := jpegtest.Options{Sampling: samplings[name], Restart: i % 3, Quality: 30 + 3*i, StandardTables: i%4 == 0}
		if i%5 == 0 && len(o.Sampling) == 3 {
			o.Scans = [][]int{{0}, {1, 2}}
		}
		if i%3 == 1 {
			o.Progressive = jpegtest.Script(len(o.Sampling))[:len(o.Sampling)*(1+i%4)]
		}
		f.Add(jpegtest.Encode(m, o), uint64(i))
	}
}

// declared is the most memory that a new decoder may take for a region of w x h of the parsed file, by what the comment of Decoder says: buffers
// are made a quarter larger than they must be, and lists of scans and marks grow by doubling.
func (d *Decoder) declared(w, h int) uint64 {
	f, scans := &d.parser.frame, d.parser.scans
	w, h = w+288, h+288 // whole MCUs, and two of up to 32 x 32 more at each side, which smoothing looks at
	bytes := 256<<10 + 2*len(d.parser.src) + 250*w + 2048*len(scans)
	if len(scans) > 0 && !f.single(&scans[0]) {
		bytes += 2 * f.n * w * h
	}
	if f.progressive {
		bits := f.n * f.w * (f.h + 32) / 8
		if bytes += bits; f.smoothed() {
			bytes += bits // a second reading of more rows has memory of its own, and the first one's is garbage
		}
	}
	return uint64(bytes)
}

// within decodes a region of b in memory of its own, and holds the decoder to what it declares.
func within(t *testing.T, level string, b []byte, l Limits, r image.Rectangle) {
	known := NewDecoder(level)
	_, _, wrong := known.Parse(b, l)
	budget.Hold(t, known.declared(r.Dx(), r.Dy()), func() {
		d := NewDecoder(level)
		_, _, err := d.Parse(b, l)
		if err == nil && !r.Empty() {
			err = d.Decode(r, nowhere{})
		}
		if (err == nil) != (wrong == nil) {
			t.Errorf("%v, a second time %v", wrong, err)
		}
	})
}

// FuzzOracle: any bytes get the oracle's verdict and pixels, at every level, in every region. The input ends at an inaccessible
// page.
func FuzzOracle(f *testing.F) {
	fuzzSeeds(f)
	decoders := allLevels()
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		w, h, err := decoders[0].Parse(b, Limits{})
		if err == nil && w*h > 1<<16 {
			t.Skip("too slow for the oracle")
		}
		b = guardtest.Copy(t, b)
		within(t, kernel.Scalar, b, Limits{}, image.Rect(0, 0, w, h))
		check(t, decoders, b, rand.New(rand.NewPCG(seed, 1)), 2)
	})
}

// FuzzRegion: large pictures too, whose regions are decoded without the rest: levels agree, and a region of a region is
// the same.
func FuzzRegion(f *testing.F) {
	fuzzSeeds(f)
	decoders := allLevels()
	limits := Limits{ScanBlocks: 1 << 22} // a run has many decodes: some 0.1 s for each
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		b = guardtest.Copy(t, b)
		r := rand.New(rand.NewPCG(seed, 2))
		var first []byte
		for i, d := range decoders {
			w, h, err := d.Parse(b, limits)
			if err != nil || w*h > 1<<28 {
				return
			}
			outer := image.Rect(0, 0, 150, 150).Add(image.Pt(int(seed%uint64(w)), int(seed>>32%uint64(h)))).Intersect(image.Rect(0, 0, w, h))
			if i == 0 {
				r = rand.New(rand.NewPCG(seed, uint64(w*h)))
				within(t, kernel.Scalar, b, limits, outer)
			}
			pix, err := decodeRegion(d, outer)
			if err != nil {
				t.Fatal(err)
			}
			inner := randomRegion(r, outer.Dx(), outer.Dy())
			part, err := decodeRegion(d, inner.Add(outer.Min))
			if err != nil || string(part) != string(crop(pix, outer.Dx(), inner)) {
				t.Fatalf("%v of %v differs (%v)", inner, outer, err)
			}
			if i == 0 {
				first = pix
			} else if string(pix) != string(first) {
				t.Fatalf("levels %v differ in %v", kernel.Levels(), outer)
			}
		}
	})
}
