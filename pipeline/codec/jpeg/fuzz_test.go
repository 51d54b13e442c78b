package jpeg

import (
	"image"
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
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

// FuzzOracle: any bytes get the oracle's verdict and pixels, at every level, in every region. The input ends at an inaccessible
// page.
func FuzzOracle(f *testing.F) {
	fuzzSeeds(f)
	decoders := allLevels()
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		if _, _, err := decoders[0].Parse(b, Limits{}); err == nil && decoders[0].parser.frame.w*decoders[0].parser.frame.h > 1<<16 {
			t.Skip("too slow for the oracle")
		}
		check(t, decoders, guardedCopy(t, b), rand.New(rand.NewPCG(seed, 1)), 2)
	})
}

// FuzzRegion: large pictures too, whose regions are decoded without the rest: levels agree, and a region of a region is
// the same.
func FuzzRegion(f *testing.F) {
	fuzzSeeds(f)
	decoders := allLevels()
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		b = guardedCopy(t, b)
		r := rand.New(rand.NewPCG(seed, 2))
		var first []byte
		for i, d := range decoders {
			w, h, err := d.Parse(b, Limits{})
			if err != nil || w*h > 1<<28 {
				return
			}
			if i == 0 {
				r = rand.New(rand.NewPCG(seed, uint64(w*h)))
			}
			outer := image.Rect(0, 0, 150, 150).Add(image.Pt(int(seed%uint64(w)), int(seed>>32%uint64(h)))).Intersect(image.Rect(0, 0, w, h))
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
