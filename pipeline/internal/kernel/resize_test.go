package kernel

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
)

// resizeTaps makes weights with sums of about 1 for n outputs, up to most taps each, over a source of span. Negative
// weights, or sums that leave the bytes, come with wild.
func resizeTaps(r *rand.Rand, n, span, most int, wild bool) *Taps {
	most = min(most, span)
	t := &Taps{Stride: (most + 3) &^ 3, Span: span}
	t.Weights = make([]int32, n*t.Stride)
	for i := range n {
		count := 1 + r.IntN(most)
		t.Count = append(t.Count, int32(count))
		t.First = append(t.First, int32(r.IntN(span-count+1)))
		left := int32(1 << WeightBits)
		for j := range count - 1 {
			w := r.Int32N(left/2 + 1)
			if wild {
				w = r.Int32N(1<<WeightBits) - 1<<(WeightBits-1)
			}
			t.Weights[i*t.Stride+j] = w
			left = max(left-w, 0)
		}
		t.Weights[i*t.Stride+count-1] = left
	}
	return t
}

func resizeBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
		if r.IntN(4) == 0 {
			b[i] = 255 * byte(r.IntN(2))
		}
	}
	return b
}

// sample is the definition in Taps, written down once more.
func (t *Taps) sample(i int, source func(j int) byte) byte {
	sum := int32(1 << 21)
	for j := range int(t.Count[i]) {
		sum += int32(source(int(t.First[i])+j)) * t.Weights[i*t.Stride+j]
	}
	return byte(max(0, min(sum>>22, 255)))
}

func resizeShapes(r *rand.Rand, run func(name string, n, span, most int, wild bool)) {
	for k := range 300 {
		n, span, most := 1+r.IntN(40), 1+r.IntN(60), 1+r.IntN(12)
		if k%10 == 0 {
			n, span, most = 1+r.IntN(300), 1+r.IntN(900), 1+r.IntN(90)
		}
		run(fmt.Sprintf("%d of %d by %d taps", n, span, most), n, span, most, k%3 == 0)
	}
}

func TestResizeVerticalGivesTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	vectors, total := 0, 0
	resizeShapes(r, func(name string, width, span, most int, wild bool) {
		taps := resizeTaps(r, 5, span, most, wild)
		stride := width + r.IntN(9)
		src := guardtest.Bytes(t, (span-1)*stride+width)
		copy(src, resizeBytes(r, len(src)))
		for _, level := range Levels() {
			v := NewVertical(level)
			v.Set(taps)
			if Vector(level) {
				total++
				if v.fits {
					vectors++
				}
			}
			for i := range taps.First {
				dst, whole := resizeCanary(width)
				v.Row(i, dst, src[int(taps.First[i])*stride:], stride)
				for x, got := range dst {
					if want := taps.sample(i, func(j int) byte { return src[j*stride+x] }); got != want {
						t.Fatalf("%s: %s: row %d sample %d: %d, want %d", level, name, i, x, got, want)
					}
				}
				checkResizeCanary(t, level+": "+name, whole, width)
			}
		}
	})
	if vectors*2 < total {
		t.Errorf("the vector kernel took %d of %d weights", vectors, total)
	}
}

func TestResizeHorizontalGivesTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	resizeShapes(r, func(name string, width, span, most int, wild bool) {
		taps := resizeTaps(r, width, span, most, wild)
		rows, stride := 1+r.IntN(7), 3*span+r.IntN(9)
		src := guardtest.Bytes(t, (rows-1)*stride+3*span+HorizontalRead)
		copy(src, resizeBytes(r, len(src)))
		gap := r.IntN(9)
		for _, level := range Levels() {
			for flips := range 4 {
				flipX, flipY := flips&1 != 0, flips&2 != 0
				h := NewHorizontal(level)
				h.Set(taps, flipX, flipY)
				dstStride := 3*width + gap
				dst, whole := resizeCanary((rows-1)*dstStride + 3*width)
				h.Rows(dst, dstStride, src, stride, rows)
				for y := range rows {
					for k := range 3 * width {
						x, from := k/3, y
						if flipX {
							x = width - 1 - x
						}
						if flipY {
							from = rows - 1 - y
						}
						want := taps.sample(x, func(j int) byte { return src[from*stride+3*j+k%3] })
						if got := dst[y*dstStride+k]; got != want {
							t.Fatalf("%s: %s, flips %d: row %d sample %d: %d, want %d", level, name, flips, y, k, got, want)
						}
					}
					if y < rows-1 && bytes.Count(dst[y*dstStride+3*width:][:gap], []byte{resizeCanaryByte}) != gap {
						t.Fatalf("%s: %s: wrote between the rows", level, name)
					}
				}
				checkResizeCanary(t, level+": "+name, whole, len(dst))
			}
		}
	})
}

// Weights beyond 1, up to what a sum can hold: the vector kernel takes some of them, and must leave the others alone.
func TestResizeTakesLargeWeights(t *testing.T) {
	src := bytes.Repeat([]byte{0, 255, 128, 1}, 50)
	for _, w := range [][]int32{{1 << 23}, {1<<23 - 1<<16}, {1<<23 - 1}, {-1 << 23}, {1 << 22, 1 << 22}, {1<<23 - 1, -1 << 22}, {-1 << 22, 3 << 21}} {
		taps := &Taps{First: []int32{0}, Count: []int32{int32(len(w))}, Weights: append(w, 0, 0, 0)[:4:4], Stride: 4, Span: 2}
		for _, level := range Levels() {
			v := NewVertical(level)
			v.Set(taps)
			dst := make([]byte, 100)
			v.Row(0, dst, src, 99)
			for x, got := range dst {
				if want := taps.sample(0, func(j int) byte { return src[99*j+x] }); got != want {
					t.Fatalf("%s: %v: sample %d: %d, want %d", level, w, x, got, want)
				}
			}
		}
	}
}

const resizeCanaryByte = 0xa5

// resizeCanary returns n bytes inside a larger array whose rest must stay as it is.
func resizeCanary(n int) (b, whole []byte) {
	whole = bytes.Repeat([]byte{resizeCanaryByte}, n+128)
	return whole[64 : 64+n], whole
}

func checkResizeCanary(t *testing.T, name string, whole []byte, n int) {
	t.Helper()
	outside := append(bytes.Clone(whole[:64]), whole[64+n:]...)
	if bytes.Count(outside, []byte{resizeCanaryByte}) != len(outside) {
		t.Fatalf("%s: wrote outside of dst", name)
	}
}

func TestResizeRefusesShortSlices(t *testing.T) {
	taps := resizeTaps(rand.New(rand.NewPCG(3, 3)), 40, 60, 6, false)
	count := int(taps.Count[3])
	for _, level := range Levels() {
		h, v := NewHorizontal(level), NewVertical(level)
		h.Set(taps, false, false)
		v.Set(taps)
		for name, call := range map[string]func(){
			"source of a horizontal pass":      func() { h.Rows(make([]byte, 240), 120, make([]byte, 180+180+HorizontalRead-1), 180, 2) },
			"destination of a horizontal pass": func() { h.Rows(make([]byte, 239), 120, make([]byte, 999), 180, 2) },
			"span of a horizontal pass": func() {
				narrow := *taps
				narrow.Span = int(slices.Max(taps.First))
				NewHorizontal(AVX2).Set(&narrow, false, false)
			},
			"source of a vertical pass": func() { v.Row(3, make([]byte, 50), make([]byte, 50*count-1), 50) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: a short %s is taken", level, name)
					}
				}()
				call()
			}()
		}
	}
}
