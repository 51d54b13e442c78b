package vp8l

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// vector are the kernels of this processor's best level.
func vector() kernels { return kernels{kernel.Vector(kernel.Levels()[0])} }

// guardedPixels are n pixels, random, between whose end, or whose beginning, and an inaccessible page there is nothing.
func guardedPixels(t *testing.T, r *rand.Rand, n int, end bool) []uint32 {
	b := make([]byte, 4*n)
	v := 128
	for i := range b {
		if v += r.IntN(9) - 4; r.IntN(16) == 0 {
			v = r.IntN(256)
		}
		b[i] = byte(v)
	}
	if b = guardtest.CopyAfter(t, b); end {
		b = guardtest.Copy(t, b)
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(&b[0])), n)
}

// Every level predicts as the scalar code does, in each mode, and touches nothing but the run.
func TestPredictions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for k := range 3000 {
		w, mode := 2+r.IntN(40), k%16
		a := guardedPixels(t, r, 2*w, k&16 == 0)
		b := slices.Clone(a)
		x := 1 + r.IntN(w-1)
		n := 1 + r.IntN(w-x)
		kernels{}.predict(b, w+x, n, w, mode)
		vector().predict(a, w+x, n, w, mode)
		if !slices.Equal(a, b) {
			t.Fatalf("mode %d, %d pixels from %d of %d: differs", mode, n, x, w)
		}
	}
}

// A picture's predictions are undone as they are pixel by pixel, row by row.
func TestPredictionsOfPictures(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 3))
	for k := range 300 {
		w, h, bits := 1+r.IntN(60), 1+r.IntN(30), 2+r.IntN(4)
		of := transform{w: w, bits: bits, data: guardedPixels(t, r, parts(w, bits)*parts(h, bits), true)}
		a := guardedPixels(t, r, w*h, k%2 == 0)
		b := slices.Clone(a)
		of.undoPrediction(a, kernels{k%3 == 0 && vector().vector})
		for i, v := range b {
			switch x, y := i%w, i/w; {
			case i == 0:
				b[i] = add(v, black)
			case y == 0:
				b[i] = add(v, b[i-1])
			case x == 0:
				b[i] = add(v, b[i-w])
			default:
				undoRun(b, i, 1, w, int(of.data[y>>bits*parts(w, bits)+x>>bits]>>8&15))
			}
		}
		if !slices.Equal(a, b) {
			t.Fatalf("turn %d: %d×%d pixels, parts of %d bits: differs", k, w, h, bits)
		}
	}
}

// Every level undoes differences of colors as the scalar code does.
func TestColors(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	for k := range 2000 {
		bits, n := 2+k%8, 1+r.IntN(60)
		a, of := guardedPixels(t, r, n, k&8 == 0), guardedPixels(t, r, parts(n, bits), k&16 == 0)
		b := slices.Clone(a)
		kernels{}.addColors(b, of, bits)
		vector().addColors(a, of, bits)
		if !slices.Equal(a, b) {
			t.Fatalf("%d pixels, %d bits: differs", n, bits)
		}
	}
}

// Every level shows rows as the scalar code does, with green and without.
func TestRow(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for k := range 2000 {
		n := 1 + r.IntN(60)
		d := Decoder{kernels: vector(), rows: guardedPixels(t, r, n, true), width: n, addGreen: k%2 == 0}
		x := r.IntN(n)
		a, b := guardtest.Bytes(t, 3*(n-x)), make([]byte, 3*(n-x))
		d.Row(a, x, 0)
		d.kernels = kernels{}
		d.Row(b, x, 0)
		if !slices.Equal(a, b) {
			t.Fatalf("%d pixels: differs", n-x)
		}
	}
}

// drawGroup draws codes, with long ones among them, and of the joint table what there is.
func drawGroup(r *rand.Rand) (*group, *tables) {
	var made tables
	var at place
	for code := range codesPerGroup {
		at[code] = len(made.entries)
		lengths := []uint8{1}
		if n := 1 + r.IntN(alphabetSize(code, 4)); n > 1 {
			lengths = drawCode(r, n)
		}
		made.add(rootBits, lengths, true)
	}
	at[codesPerGroup] = len(made.entries)
	s := stream{places: []place{at}}
	s.setGroups(made.entries)
	return &s.groups[0], &made
}

// Pixels are the same, and as many bits are read, by the assembly and by the scalar code, with and without a cache, up to the end of the data.
func TestLiterals(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 3))
	if !vector().vector {
		return
	}
	read := 0
	for k := range 1000 {
		g, _ := drawGroup(r)
		data := guardtest.Bytes(t, 1+r.IntN(400))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		var got [2][]uint32
		var readers [2]bitReader
		for i := range 2 {
			d := &Decoder{kernels: kernels{i == 0}}
			s := stream{decoder: d}
			s.bits.open(data)
			p := picture{w: 100, h: 1, cacheBits: 4, groups: []group{*g}}
			colors := cache{colors: d.colors[:16], shift: 28}
			pix := make([]uint32, 100)
			p.joins = i == 0
			n := 0
			for n < len(pix) && !s.bits.over() {
				m := s.literals(&p, &p.groups[0], &colors, pix, n, len(pix)-n)
				if n += m; m == 0 {
					m = s.readSymbol(&p, pix, n, &p.groups[0], &colors)
					if n += m; m == 0 {
						break
					}
				}
			}
			read += n
			got[i], readers[i] = pix[:n], s.bits
		}
		if !slices.Equal(got[0], got[1]) || 8*readers[0].at-readers[0].bits != 8*readers[1].at-readers[1].bits {
			t.Fatalf("turn %d: %d and %d pixels differ", k, len(got[0]), len(got[1]))
		}
	}
	if read < 20_000 {
		t.Errorf("only %d pixels", read)
	}
}
