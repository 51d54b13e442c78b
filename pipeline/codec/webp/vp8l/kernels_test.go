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

// drawGroup draws codes, with long ones among them, and alpha often of one symbol.
func (s *stream) drawGroup(r *rand.Rand) {
	made := &s.decoder.tables
	var at place
	for code := range codesPerGroup {
		at[code] = len(made.entries)
		lengths := []uint8{1}
		if n := 1 + r.IntN(alphabetSize(code, 4)); n > 1 && (code != alpha || r.IntN(2) == 0) {
			lengths = drawCode(r, n)
		}
		made.add(rootBits, lengths, true)
	}
	at[codesPerGroup] = len(made.entries)
	s.places = append(s.places, at)
}

// drawPicture draws a picture, of one group or more, and its data, of which nothing is known.
func drawPicture(t *testing.T, r *rand.Rand) (*picture, *stream) {
	s := &stream{decoder: new(Decoder)}
	p := &picture{w: 1 + r.IntN(60), h: 1 + r.IntN(20), cacheBits: 4}
	if n := r.IntN(4); n > 0 {
		p.groupBits = 2 + r.IntN(3)
		p.groupStride = parts(p.w, p.groupBits)
		p.groupOf = unsafe.Slice((*uint32)(unsafe.Pointer(&guardtest.Bytes(t, 4*p.groupStride*parts(p.h, p.groupBits))[0])), p.groupStride*parts(p.h, p.groupBits))
		for i := range p.groupOf {
			p.groupOf[i] = r.Uint32N(uint32(n))
		}
		for range n - 1 {
			s.drawGroup(r)
		}
	}
	s.drawGroup(r)
	s.setGroups(s.decoder.tables.entries)
	p.groups = s.groups
	data := guardtest.Bytes(t, 1+r.IntN(1000))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	s.bits.open(data)
	return p, s
}

// read reads pixels, as many as there are.
func (s *stream) read(p *picture, pix []uint32) (n int) {
	colors := cache{colors: s.decoder.colors[:16], shift: 28}
	clear(colors.colors)
	for n < len(pix) && !s.bits.over() {
		m, ok := s.readSome(p, &colors, pix, n, n%p.w, n/p.w)
		if n += m; !ok {
			break
		}
	}
	return n
}

// Pixels are the same, and as many bits are read, by the assembly and by the scalar code, with one group and with more, up to the end of the data.
func TestLiterals(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 3))
	if !vector().vector {
		return
	}
	read := 0
	for k := range 1000 {
		p, s := drawPicture(t, r)
		pix := guardedPixels(t, r, p.w*p.h, k%2 == 0)
		want, place := slices.Clone(pix), s.bits
		n := s.read(p, want)
		s.bits, place = place, s.bits
		p.joins = true
		s.join()
		if m := s.read(p, pix); m != n || !slices.Equal(pix[:n], want[:n]) || s.bits.place() != place.place() {
			t.Fatalf("turn %d: %d and %d pixels, which differ", k, m, n)
		}
		read += n
	}
	if read < 100_000 {
		t.Errorf("only %d pixels", read)
	}
}

// The generator of the assembly has these numbers in its literals.go.
func TestAssemblyKnowsTheLayout(t *testing.T) {
	var j joint
	var d Decoder
	for name, c := range map[string]struct{ got, want uintptr }{
		"rootBits":      {rootBits, 8},
		"greenBits":     {greenBits, 9},
		"restBits":      {restBits, 10},
		"isLiteral":     {isLiteral, 2048 << 16},
		"isLong":        {isLong, 1 << 31},
		"restLacksBlue": {restLacksBlue, 0x80},
		"restLacksAll":  {restLacksAll, 0x40},
		"joint.greens":  {unsafe.Offsetof(j.greens), 0},
		"joint.rest":    {unsafe.Offsetof(j.rest), 4 << greenBits},
		"joint.blues":   {unsafe.Offsetof(j.blues), 4<<greenBits + 4<<restBits},
		"joint.roots":   {unsafe.Offsetof(j.roots), 4<<greenBits + 4<<restBits + 4<<rootBits},
		"joint":         {unsafe.Sizeof(j), 4<<greenBits + 4<<restBits + 4<<rootBits + 16},
		"colors":        {unsafe.Sizeof(d.colors), 4 * (2048 + 256)},
		"leastForRow":   {leastForRow, 120},
	} {
		if c.got != c.want {
			t.Errorf("%s is %d, not %d", name, c.got, c.want)
		}
	}
}
