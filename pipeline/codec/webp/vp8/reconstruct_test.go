package vp8

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// draw makes samples of all planes, in memory of just their size.
func draw(t *testing.T, r *rand.Rand, d *Decoder) {
	d.columns, d.rows = 1+r.IntN(3), 1+r.IntN(3)
	d.makeRoom(d.columns, d.rows)
	for _, p := range d.planes() {
		p.samples = guardtest.Bytes(t, len(p.samples))
		pixels(r, p.samples)
	}
}

// drawModes makes any modes.
func drawModes(r *rand.Rand) *modes {
	m := &modes{skipped: r.IntN(4) == 0, byBlocks: r.IntN(3) > 0, luma: uint8(r.IntN(4)), chroma: uint8(r.IntN(4))}
	for i := range m.blocks {
		m.blocks[i] = uint8(r.IntN(blockModes))
	}
	return m
}

// drawResidue makes blocks of each kind, with counts or without, and in some macroblocks coefficients that overflow.
func drawResidue(r *rand.Rand) (res residue) {
	large, counted := r.IntN(16), r.IntN(2) == 0
	for i := range pixelBlocks {
		n := r.IntN(17)
		if r.IntN(2) == 0 {
			n = r.IntN(4)
		}
		for k := range n {
			res.coefficients[i][zigzag[k]] = int16(r.IntN(2<<large) - 1<<large)
		}
		if counted {
			res.counts[i] = uint8(n)
		}
	}
	return res
}

// Whatever its modes and coefficients, every level makes the same macroblock, says the same of its coefficients, and vectors change nothing else.
func TestMacroblocks(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	vector, scalar := Decoder{kernels: kernels{kernel.Vector(kernel.Levels()[0])}}, Decoder{}
	for turn := range 6000 {
		draw(t, r, &vector)
		x, y, m := r.IntN(vector.columns), r.IntN(vector.rows), drawModes(r)
		vector.beginRow(y)
		vector.residue = drawResidue(r)
		scalar.columns, scalar.rows, scalar.residue = vector.columns, vector.rows, vector.residue
		scalar.makeRoom(scalar.columns, scalar.rows)
		want := scalar.planes()
		for i, p := range vector.planes() {
			copy(want[i].samples, p.samples)
		}
		others := copied(&vector)
		if a, b := vector.reconstruct(m, x, y), scalar.reconstruct(m, x, y); a != b {
			t.Fatalf("turn %d: %+v has coefficients: %t, not %t", turn, m, a, b)
		}
		for i, p := range vector.planes() {
			for k := range p.side {
				at := p.at(p.side*x, p.side*y+k)
				if got, want := p.samples[at:][:p.side], want[i].samples[at:][:p.side]; !slices.Equal(got, want) {
					t.Fatalf("turn %d: %+v, row %d of plane %d: %v, not %v", turn, m, k, i, got, want)
				}
				copy(others[i][at:][:p.side], p.samples[at:])
			}
			if vector.fits() && !slices.Equal(others[i], p.samples) {
				t.Fatalf("turn %d: %+v: plane %d differs elsewhere", turn, m, i)
			}
		}
	}
}

func copied(d *Decoder) (samples [3][]byte) {
	for i, p := range d.planes() {
		samples[i] = slices.Clone(p.samples)
	}
	return samples
}

// fits reports whether vectors make the macroblock.
func (d *Decoder) fits() bool {
	return d.kernels.vector && d.kernels.transform(&d.differences, &d.residue) <= mostForVector
}

// Where 16 bits are enough all ways to transform a block give the same, up to the largest coefficients for which vectors do it.
func TestFewCoefficients(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	draw := func() int16 {
		return [3]int16{-mostForVector, mostForVector, int16(r.IntN(2*mostForVector) - mostForVector)}[r.IntN(3)]
	}
	for range 20_000 {
		few, all := plane{samples: make([]byte, 16), stride: 4}, plane{samples: make([]byte, 16), stride: 4}
		pixels(r, few.samples)
		copy(all.samples, few.samples)
		in := [16]int16{draw()}
		if r.IntN(2) == 0 {
			addFirst(&few, 0, in[0])
		} else {
			in[1], in[4] = draw(), draw()
			addThree(&few, 0, &in)
		}
		if addAll(&all, 0, &in); !slices.Equal(few.samples, all.samples) {
			t.Fatalf("%v: %v, not %v", in, few.samples, all.samples)
		}
	}
}

// Blocks are transformed by how many coefficients they have, and those of one by whether it is 0.
func TestKinds(t *testing.T) {
	var r residue
	if r.kinds() != [pixelBlocks]uint8{} || r.hasMore() {
		t.Error("none has coefficients, and some have kinds")
	}
	r.coefficients[1][0], r.coefficients[3][0], r.coefficients[5][0], r.coefficients[7][4], r.coefficients[8][2] = -1, 7, 9, 1, 1
	copy(r.counts[:], []uint8{1, 1, 2, 3, 4, 16, 0})
	want := []uint8{
		transformNone, transformFirst, transformThree, transformThree, transformAll, transformAll, transformNone, transformThree, transformAll, transformNone,
	}
	if got := r.kinds(); !slices.Equal(got[:len(want)], want) || !r.hasMore() {
		t.Errorf("%v, want %v", got[:len(want)], want)
	}
	if r.counts = [pixelBlocks]uint8{1, 1}; r.hasMore() {
		t.Error("no block has more than one, and some are said to")
	}
}
