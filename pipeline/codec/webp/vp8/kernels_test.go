package vp8

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// pixels are like those of a picture: they differ little from one to the next, but at some places much.
func pixels(r *rand.Rand, p []byte) {
	v := 128
	for i := range p {
		if v += r.IntN(9) - 4; r.IntN(16) == 0 {
			v = r.IntN(256)
		}
		p[i] = byte(v)
	}
}

// Every level filters the edges of any macroblock of a picture as the scalar code does, whatever the strength, and touches nothing but the pixels beside
// them, also where a picture ends.
func TestEdges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for size := range 9 {
		columns, rows := 1+size%3, 1+size/3
		for _, guard := range []func(testing.TB, []byte) []byte{guardtest.Copy, guardtest.CopyAfter} {
			var pictures [2]picture
			for i := range pictures {
				pictures[i].makeRoom(columns, rows)
				for _, p := range pictures[i].planes() {
					p.samples = guard(t, p.samples)
				}
			}
			for range 200 {
				s := &strength{limit: 1 + r.Int32N(189), interior: 1 + r.Int32N(63), variance: r.Int32N(3), inner: r.IntN(4) > 0}
				checkEdges(t, r, &pictures, s, r.IntN(columns), r.IntN(rows))
			}
		}
	}
}

// checkEdges filters the edges of a macroblock of pictures that it draws.
func checkEdges(t *testing.T, r *rand.Rand, pictures *[2]picture, s *strength, x, y int) {
	t.Helper()
	a, b := pictures[0].planes(), pictures[1].planes()
	vector := kernels{kernel.Vector(kernel.Levels()[0])}
	for down, filter := range []func(*kernels, *picture, *strength, int, int){(*kernels).filterAcross, (*kernels).filterDown} {
		for i := range a {
			pixels(r, a[i].samples)
			copy(b[i].samples, a[i].samples)
		}
		filter(&kernels{}, &pictures[0], s, x, y)
		filter(&vector, &pictures[1], s, x, y)
		for i := range a {
			if !bytes.Equal(a[i].samples, b[i].samples) {
				t.Fatalf("macroblock %d, %d of %d bytes a row, direction %d, %+v: plane %d differs", x, y, a[i].stride, down, *s, i)
			}
		}
	}
}

// Every level makes colors alike, of rows of each length.
func TestColors(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	vector := kernels{kernel.Vector(kernel.Levels()[0])}
	for n := 1; n < 140; n++ {
		near, far, dst, want := guardtest.Bytes(t, n+2), guardtest.Bytes(t, n+2), guardtest.Bytes(t, 2*n), make([]byte, 2*n)
		pixels(r, near)
		pixels(r, far)
		upsampleScalar(want, near, far)
		if vector.upsample(dst, near, far); !bytes.Equal(dst, want) {
			t.Fatalf("%d samples: differ", n)
		}
		y, cb, cr, rgb, wanted := guardtest.Bytes(t, n), guardtest.Bytes(t, n), guardtest.Bytes(t, n), guardtest.Bytes(t, 3*n), make([]byte, 3*n)
		for _, p := range [][]byte{y, cb, cr} {
			for i := range p {
				p[i] = byte(r.Uint32())
			}
		}
		colorScalar(wanted, y, cb, cr)
		if vector.color(rgb, y, cb, cr); !bytes.Equal(rgb, wanted) {
			t.Fatalf("%d pixels: differ", n)
		}
	}
}

// drawProbabilities draws probabilities, of which some are at the ends of what there is, so that values of each kind come.
func drawProbabilities(r *rand.Rand, p *tokenProbabilities) {
	most := 1 + r.IntN(256)
	for i := range p {
		for j := range p[i] {
			for k := range p[i][j] {
				for l := range p[i][j][k] {
					p[i][j][k][l] = uint8(r.IntN(most))
				}
			}
		}
	}
}

// Every level reads the same blocks, with the same contexts, and stands at the same place of the data then, up to their end.
func TestBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	vector, scalar := Decoder{kernels: kernels{kernel.Vector(kernel.Levels()[0])}}, Decoder{}
	largest := int16(0)
	for k := range 2000 {
		drawProbabilities(r, &vector.probabilities)
		scalar.probabilities = vector.probabilities
		data := guardtest.Bytes(t, 1+r.IntN(1500))
		for i := range data {
			if data[i] = byte(r.Uint32()); k%4 == 0 {
				data[i] |= byte(r.Uint32() | r.Uint32())
			}
		}
		if k%16 == 0 {
			data[0] = 0xff
		}
		var p [2]partition
		p[0].open(data)
		p[1].open(data)
		var contexts [2][2][4]uint8
		for range 12 {
			side, first, kind := 1<<r.IntN(3), r.IntN(2), r.IntN(4)
			factors := [2]int32{1, 1 + r.Int32N(157)}
			var blocks [2][16][16]int16
			var counts [2][16]uint8
			for i, d := range []*Decoder{&vector, &scalar} {
				c := &contexts[i]
				d.readBlocks(&p[i], kind, &factors, first, blocks[i][:side*side], counts[i][:side*side], c[0][:side], c[1][:side])
			}
			if blocks[0] != blocks[1] || counts[0] != counts[1] || contexts[0] != contexts[1] {
				t.Fatalf("turn %d: %d×%d blocks of kind %d from %d on: differ", k, side, side, kind, first)
			}
			for _, b := range blocks[0] {
				for _, v := range b {
					largest = max(largest, v)
				}
			}
		}
		if 8*p[0].at-p[0].bits != 8*p[1].at-p[1].bits {
			t.Fatalf("turn %d: other bits are next", k)
		}
		for range 64 {
			if v := uint8(r.Uint32()); p[0].flag(v) != p[1].flag(v) || p[0].over != p[1].over {
				t.Fatalf("turn %d: another bit", k)
			}
		}
	}
	if largest < 1000 {
		t.Errorf("the largest value is %d", largest)
	}
}

// Every level reads the same modes, and stands at the same place of the data then, up to their end.
func TestModes(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	vector, scalar := Decoder{kernels: kernels{kernel.Vector(kernel.Levels()[0])}}, Decoder{}
	for k := range 2000 {
		data := guardtest.Bytes(t, 1+r.IntN(300))
		for i := range data {
			if data[i] = byte(r.Uint32()); k%4 == 0 {
				data[i] |= byte(r.Uint32() | r.Uint32())
			}
		}
		vector.first.open(data)
		scalar.first.open(data)
		var m [2]modes
		var above, left [2][4]uint8
		for range 40 {
			vector.readBlockModes(&m[0], &above[0], &left[0])
			scalar.readBlockModes(&m[1], &above[1], &left[1])
			a, b := &vector.first, &scalar.first
			if m[0] != m[1] || above[0] != above[1] || left[0] != left[1] || 8*a.at-a.bits != 8*b.at-b.bits || a.span != b.span || a.over != b.over {
				t.Fatalf("turn %d: %v, not %v, or other bits are next", k, m[0].blocks, m[1].blocks)
			}
		}
	}
}

// The generator of the assembly has these numbers in its files.
func TestAssemblyKnowsTheLayout(t *testing.T) {
	var p partition
	var w copyWindow
	for name, c := range map[string]struct{ got, want uintptr }{
		"value":         {unsafe.Offsetof(p.value), 0},
		"span":          {unsafe.Offsetof(p.span), 8},
		"bits":          {unsafe.Offsetof(p.bits), 16},
		"data":          {unsafe.Offsetof(p.data), 24},
		"at":            {unsafe.Offsetof(p.at), 48},
		"band":          {unsafe.Sizeof(tokenProbabilities{}[0][0]), 33},
		"context":       {unsafe.Sizeof(tokenProbabilities{}[0][0][0]), 11},
		"leastForBlock": {leastForBlock, 272},
		"leastForModes": {leastForModes, 128},
		"above":         {unsafe.Sizeof(modeProbabilities[0]), 90},
		"left":          {unsafe.Sizeof(modeProbabilities[0][0]), 9},
		"window bits":   {unsafe.Offsetof(w.bits), 0},
		"window valid":  {unsafe.Offsetof(w.valid), 8},
		"window at":     {unsafe.Offsetof(w.at), 16},
		"code bits":     {copiedCodeBits, 11},
		"copied end":    {coefficientsEnd, 16 * 25},
		"block":         {unsafe.Sizeof(residue{}.coefficients[0]), 32},
		"luma blocks":   {lumaBlocks, 2 * 8},
		"pixel blocks":  {pixelBlocks, 6 * 4},
		"predictor":     {unsafe.Sizeof(predictors[0]), 1 << 6},
		"pairs":         {unsafe.Offsetof(predictors[0].pairs), 16},
		"motion":        {unsafe.Offsetof(predictors[0].motion), 32},
		"mean":          {unsafe.Offsetof(predictors[0].mean), 48},
		"second block":  {secondBlock, 2 * 12},
		"factor":        {unsafe.Sizeof(factors{}.luma[0]), 4},
		"copied least":  {leastForCopied, 1280},
		"limit":         {unsafe.Offsetof(strength{}.limit), 0},
		"interior":      {unsafe.Offsetof(strength{}.interior), 4},
		"variance":      {unsafe.Offsetof(strength{}.variance), 8},
		"inner":         {unsafe.Offsetof(strength{}.inner), 12},
	} {
		if c.got != c.want {
			t.Errorf("%s is %d, not %d", name, c.got, c.want)
		}
	}
}
