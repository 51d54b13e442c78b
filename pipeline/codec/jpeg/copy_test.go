package jpeg

import (
	"bytes"
	"errors"
	"image"
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// copyOf makes the copy of a file, on the way of decoding a region of it; empty: it has none.
func copyOf(t testing.TB, d *Decoder, file []byte, interval int, r image.Rectangle) []byte {
	t.Helper()
	d.RecordCopies(true)
	defer d.RecordCopies(false)
	index := indexOf(t, d, file, interval, r)
	if len(index) > 0 && !IsCopy(index) {
		return nil
	}
	return index
}

// Every sampling, all scripts of scans, with restarts and without: the same pixels in every region.
func TestCopyChangesNoPixel(t *testing.T) {
	forLevels(t, func(t *testing.T, d *Decoder) {
		r := rand.New(rand.NewPCG(17, 7))
		for i, name := range inOrder(samplings) {
			for k, side := range []int{1, 17, 150} {
				m := jpegtest.Photograph(uint64(i), i, side+r.IntN(side), side+r.IntN(side))
				file := jpegtest.Encode(m, jpegtest.Options{Sampling: samplings[name], Quality: 40 + 4*i, Progressive: jpegtest.Script(len(samplings[name])), Restart: k * 5})
				index := copyOf(t, d, file, 8, randomRegion(r, m.W, m.H))
				if len(index) == 0 {
					t.Fatalf("%s: no copy", name)
				}
				if IndexInterval(index) != 8 {
					t.Fatalf("%s: interval %d", name, IndexInterval(index))
				}
				checkIndexed(t, d, file, index, r, 6)
			}
		}
	})
}

// Files of every layout and damage that have a copy: the same pixels. Those that are smoothed, or whose values no sequential file has, have none.
func TestCopiesOfTheCorpus(t *testing.T) {
	d := NewDecoder(kernel.Levels()[0])
	r := rand.New(rand.NewPCG(17, 8))
	copied, none := 0, 0
	for _, s := range newCorpus() {
		if _, _, err := d.Parse(s.data, Limits{}); err != nil || !d.parser.frame.progressive {
			continue
		}
		smoothed := d.parser.frame.smoothed()
		index := copyOf(t, d, s.data, 3, image.Rectangle{})
		if len(index) == 0 {
			none++
			continue
		}
		if smoothed {
			t.Fatalf("%s has a copy", s.name)
		}
		if copied++; len(index) > 2*len(s.data)+2000 {
			t.Errorf("%s: %d bytes of %d", s.name, len(index), len(s.data))
		}
		checkIndexed(t, d, s.data, index, r, 2)
	}
	if copied < 300 || none < 20 {
		t.Errorf("%d have a copy, %d have none", copied, none)
	}
}

// A copy depends on the file alone, and is made only where it was asked for.
func TestCopyIsAskedFor(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 9))
	d := NewDecoder(kernel.Levels()[0])
	m := jpegtest.Photograph(1, 1, 130, 90)
	file := jpegtest.Encode(m, jpegtest.Options{Progressive: jpegtest.Script(3)})
	if index := indexOf(t, d, file, 8, image.Rectangle{}); len(index) > 0 {
		t.Error("a copy that nobody asked for")
	}
	want := copyOf(t, d, file, 8, image.Rectangle{})
	for range 5 {
		if got := copyOf(t, d, file, 8, randomRegion(r, m.W, m.H)); !bytes.Equal(got, want) || len(got) == 0 {
			t.Fatal("another copy")
		}
	}
	if index := copyOf(t, d, jpegtest.Encode(m, jpegtest.Options{}), 8, image.Rectangle{}); len(index) > 0 {
		t.Error("a sequential file has a copy")
	}
	d.RecordCopies(true)
	if _, _, err := d.ParseIndexed(file, Limits{}, want); err != nil {
		t.Fatal(err)
	}
	if d.Record(8); len(d.AppendIndex(nil)) > 0 {
		t.Error("a copy of a copy")
	}
}

// A copy does not say that a file is within limits that it was not made with.
func TestLimitsOfCopies(t *testing.T) {
	d := NewDecoder(kernel.Levels()[0])
	file := jpegtest.Encode(jpegtest.Photograph(1, 1, 130, 90), jpegtest.Options{Progressive: jpegtest.Script(3)})
	index := copyOf(t, d, file, 8, image.Rectangle{})
	if _, _, err := d.Parse(file, Limits{}); err != nil {
		t.Fatal(err)
	}
	scans, blocks := len(d.parser.scans), d.parser.blocks
	for _, c := range []struct {
		limits Limits
		within bool
	}{
		{Limits{}, true}, {Limits{Scans: scans}, true}, {Limits{Scans: scans - 1}, false}, {Limits{ScanBlocks: blocks}, true}, {Limits{ScanBlocks: blocks - 1}, false},
	} {
		_, _, want := d.Parse(file, c.limits)
		_, _, err := d.ParseIndexed(file, c.limits, index)
		if (err == nil) != c.within || (want == nil) != c.within || !c.within && !errors.Is(err, ErrLimit) {
			t.Errorf("%+v: %v, and %v without the copy", c.limits, err, want)
		}
	}
}

// A copy that makes no sense does no harm.
func TestCopyOfNoSense(t *testing.T) {
	d := NewDecoder(kernel.Levels()[0])
	r := rand.New(rand.NewPCG(17, 10))
	file := jpegtest.Encode(jpegtest.Photograph(1, 1, 70, 50), jpegtest.Options{Progressive: jpegtest.Script(3)})
	index := copyOf(t, d, file, 2, image.Rectangle{})
	for i := range 3000 {
		b := bytes.Clone(index)
		if b[r.IntN(len(b))] ^= 1 << r.IntN(8); i%3 == 0 {
			b = b[:r.IntN(len(b))]
		}
		w, h, err := d.ParseIndexed(file, Limits{}, guardtest.Copy(t, b))
		if err == nil && w*h < 1<<20 {
			err = d.Decode(randomRegion(r, w, h), nowhere{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The codes of any counts are a prefix code of 16 bits at most without the code of all ones, and those of symbols that are more frequent are not longer.
func TestDefinitionsOfCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 11))
	for range 300 {
		var counts symbolCounts
		used := 0
		for i, n := 0, 1+r.IntN(256); i < n; i++ {
			counts[r.IntN(256)] = 1 + r.IntN(1<<r.IntN(40))
		}
		if r.IntN(3) == 0 { // as skewed as can be
			counts = symbolCounts{}
			for i, a, b := 0, 1, 1; i < 40; i, a, b = i+1, b, a+b {
				counts[i] = a
			}
		}
		d := counts.makeDefinition()
		var e encoding
		e.set(d)
		for s, n := range counts {
			if n > 0 {
				used++
			}
			if (n > 0) != (e.size[s] > 0) || e.size[s] > 16 {
				t.Fatalf("symbol %d, %d times: %d bits", s, n, e.size[s])
			}
			for other, m := range counts {
				if m > n && n > 0 && e.size[other] > e.size[s] {
					t.Fatalf("%d bits for %d times, %d for %d", e.size[other], m, e.size[s], n)
				}
			}
		}
		if !d.valid(255) || d.symbols() != used {
			t.Fatalf("%d symbols of %d, or no code: %v", d.symbols(), used, d[:16])
		}
	}
}
