//go:build amd64 && !purego

package raster

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/internal/plain"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// hasWide tells whether this processor has the kernels of AVX-512.
func hasWide(t *testing.T) bool {
	t.Helper()
	if kernel.Levels()[0] == kernel.AVX512 {
		return true
	}
	t.Log("this processor has no such kernels")
	return false
}

func TestLookUpWideKernels(t *testing.T) {
	if !hasWide(t) {
		return
	}
	r := rand.New(rand.NewPCG(4, 3))
	var tables [3][256]byte
	for c := range tables {
		for v := range tables[c] {
			tables[c][v] = byte(r.Uint32())
		}
	}
	for n := 1; n < 900; n += 1 + n/70 {
		p := make([]byte, n)
		drawColours(r, p)
		for i := range min(n, 256) {
			p[n-1-i] = byte(i)
		}
		for side, guard := range []func(testing.TB, []byte) []byte{guardtest.Copy, guardtest.CopyAfter} {
			one, each := guard(t, p), guard(t, p)
			lookUpBytesAVX512(&one[0], &tables[0], n)
			lookUpPixelsAVX512(&each[0], &tables, n)
			for i, v := range p {
				if one[i] != tables[0][v] || each[i] != tables[i%3][v] {
					t.Fatalf("side %d, value %d of %d: another one for %d", side, i, n, v)
				}
			}
		}
	}
}

func TestGreyWideKernels(t *testing.T) {
	if !hasWide(t) {
		return
	}
	r := rand.New(rand.NewPCG(4, 5))
	for _, factor := range []float32{0, 0.3, 0.999, 1, 1.7, -0.4, -3, 200, 1 << 20, -1 << 20} {
		shares := fillShares(&Workspace{}, factor)
		for n := 1; n < 200; n += 1 + n/20 {
			p := make([]byte, 3*n)
			drawColours(r, p)
			sum, want := uint64(0), slices.Clone(p)
			for i := range n {
				sum += uint64(greyOf(p[3*i:][:3])) //nolint:gosec // a byte
			}
			saturatePixels(want, shares)
			for side, guard := range []func(testing.TB, []byte) []byte{guardtest.Copy, guardtest.CopyAfter} {
				got := guard(t, p)
				if s := sumGreysAVX512(&got[0], n); s != sum {
					t.Fatalf("side %d, %d greys: %d, want %d", side, n, s, sum)
				}
				if mixGreysAVX512(&got[0], n, factor); !bytes.Equal(got, want) {
					t.Fatalf("side %d, %d pixels by %v: another result", side, n, factor)
				}
			}
		}
	}
	white := bytes.Repeat([]byte{255}, 3<<24)
	if got := sumGreysAVX512(&white[0], 1<<24); got != 255<<24 {
		t.Errorf("as many as may be: %d", got)
	}
}

// Lines of every slope that groups of pixels can have, at all edges of pictures of every size.
func TestGatherKernel(t *testing.T) {
	if !hasWide(t) {
		return
	}
	r := rand.New(rand.NewPCG(4, 4))
	gathered := map[int]int{}
	for range 4000 {
		src := pixel.Image{W: 1 + r.IntN(90), H: 1 + r.IntN(20)}
		src.Stride = 3*src.W + r.IntN(2)*r.IntN(9)
		pix := make([]byte, (src.H-1)*src.Stride+3*src.W+pixel.Pad)
		drawColours(r, pix)
		dx, dy := int(r.NormFloat64()*one), int(r.NormFloat64()*one/2)
		x, y := r.IntN(src.W*one), r.IntN(src.H*one)
		n := 0 // pixels inside
		for px, py := x, y; n < 100 && px >= 0 && px < src.W*one && py >= 0 && py < src.H*one; n++ {
			px, py = px+dx, py+dy
		}
		group := (&Workspace{Level: kernel.AVX512}).groupGathered(&src, dx, dy)
		if group == 0 || n < group {
			continue
		}
		gathered[group]++
		want := make([]byte, 3*n)
		src.Pix = pix
		gatherPixels(want, &src, x, y, dx, dy, 0)
		for side, guard := range []func(testing.TB, []byte) []byte{guardtest.Copy, guardtest.CopyAfter} {
			src.Pix = guard(t, pix)
			got := guard(t, make([]byte, 3*n))
			gatherPixels(got, &src, x, y, dx, dy, group)
			if !bytes.Equal(got, want) {
				t.Fatalf("side %d, %d pixels from %x, %x on by %x, %x in groups of %d: others", side, n, x, y, dx, dy, group)
			}
		}
	}
	if len(gathered) != groupMost-groupLeast+1 {
		t.Errorf("not all groups were met: %v", gathered)
	}
}

// Warps are the same at all levels, of pictures and to pictures with gaps between rows.
func TestWarpLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 3))
	for range 300 {
		src := plain.RandomImage(r, 1+r.IntN(90), 1+r.IntN(30))
		dst := pixel.Image{W: 1 + r.IntN(90), H: 1 + r.IntN(30)}
		dst.Stride = 3*dst.W + r.IntN(9)
		m := Affinity{Angle: 30 * r.NormFloat64(), Scale: 0.7 + r.Float64(), Shear: [2]float64{9 * r.NormFloat64()}}.
			InverseMatrix(&[2]float64{float64(src.W / 2), float64(src.H / 2)})
		e := Effect{Across: warpFixed}
		copy(e.Numbers[:], slices.Concat(m[:], []float64{9, 200, 77}))
		var results [][]byte
		for _, level := range []string{kernel.Levels()[0], kernel.Scalar} {
			dst.Pix = make([]byte, (dst.H-1)*dst.Stride+3*dst.W)
			e.Across(&e, &Workspace{Level: level}, &dst, src)
			results = append(results, dst.Pix)
		}
		if !bytes.Equal(results[0], results[1]) {
			t.Fatalf("%d×%d to %d×%d by %v differs between levels", src.W, src.H, dst.W, dst.H, m)
		}
	}
}
