package kernel

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
)

func jpegRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// jpegLevels calls f with every level this processor can run, the scalar one last.
func jpegLevels(t *testing.T, f func(t *testing.T, k *JPEG)) {
	for _, l := range Levels() {
		k := JPEGFor(l)
		t.Run(l, func(t *testing.T) { f(t, k) })
	}
}

// rowLengths are the row lengths worth a test: all up to three groups of 64, then some longer ones.
func rowLengths() (n []int) {
	for i := range 196 {
		n = append(n, i)
	}
	return append(n, 255, 500, 511, 1000)
}

// canvas is an output slice inside an array of canaries, at an odd place.
type canvas struct{ all, out []byte }

const canvasFill, canvasMargin = 0xa5, 67

func newCanvas(n int) canvas {
	c := canvas{all: bytes.Repeat([]byte{canvasFill}, n+2*canvasMargin)}
	c.out = c.all[canvasMargin : canvasMargin+n : canvasMargin+n]
	return c
}

func (c canvas) check(t *testing.T) {
	t.Helper()
	n := len(c.out)
	for i, v := range c.all {
		if (i < canvasMargin || i >= canvasMargin+n) && v != canvasFill {
			t.Fatalf("byte %d of %d written", i-canvasMargin, n)
		}
	}
}

func sampleBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		switch b[i] = byte(r.Uint32()); r.IntN(8) {
		case 0:
			b[i] = 0
		case 1:
			b[i] = 255
		}
	}
	return b
}

// rowKernels are the kernels that make a row of out(n) bytes from rows of in(n) bytes.
var rowKernels = map[string]struct {
	in, out func(n int) int
	run     func(k *JPEG, dst []byte, src [3][]byte)
	want    func(dst []byte, src [3][]byte)
}{
	"color": {
		func(n int) int { return n }, func(n int) int { return 3 * n },
		func(k *JPEG, dst []byte, s [3][]byte) { k.Color(dst, s[0], s[1], s[2]) }, wantColor,
	},
	"grey": {
		func(n int) int { return n }, func(n int) int { return 3 * n },
		func(k *JPEG, dst []byte, s [3][]byte) { k.Grey(dst, s[0]) },
		func(dst []byte, s [3][]byte) {
			for i := range dst {
				dst[i] = s[0][i/3]
			}
		},
	},
	"h2v1": {
		func(n int) int { return n + 2 }, func(n int) int { return 2 * n },
		func(k *JPEG, dst []byte, s [3][]byte) { k.H2V1(dst, s[0]) },
		func(dst []byte, s [3][]byte) {
			for i := range dst {
				c, other, bias := int(s[0][i/2+1]), int(s[0][i/2+2*(i%2)]), 1+i%2
				dst[i] = byte((3*c + other + bias) / 4)
			}
		},
	},
	"h2v2": {
		func(n int) int { return n + 2 }, func(n int) int { return 2 * n },
		func(k *JPEG, dst []byte, s [3][]byte) { k.H2V2(dst, s[0], s[1]) },
		func(dst []byte, s [3][]byte) {
			sum := func(i int) int { return 3*int(s[0][i]) + int(s[1][i]) }
			for i := range dst {
				dst[i] = byte((3*sum(i/2+1) + sum(i/2+2*(i%2)) + 8 - i%2) / 16)
			}
		},
	},
	"h1v2/above": {
		func(n int) int { return n }, func(n int) int { return n },
		func(k *JPEG, dst []byte, s [3][]byte) { k.H1V2(dst, s[0], s[1], 1) },
		func(dst []byte, s [3][]byte) {
			for i := range dst {
				dst[i] = byte((3*int(s[0][i]) + int(s[1][i]) + 1) / 4)
			}
		},
	},
	"h1v2/below": {
		func(n int) int { return n }, func(n int) int { return n },
		func(k *JPEG, dst []byte, s [3][]byte) { k.H1V2(dst, s[0], s[1], 2) },
		func(dst []byte, s [3][]byte) {
			for i := range dst {
				dst[i] = byte((3*int(s[0][i]) + int(s[1][i]) + 2) / 4)
			}
		},
	},
}

func wantColor(dst []byte, s [3][]byte) {
	fixed := func(f float64) int { return int(math.Round(f * 65536)) }
	for i := range s[0] {
		y, b, r := int(s[0][i]), int(s[1][i])-128, int(s[2][i])-128
		v := [3]int{
			y + (fixed(1.40200)*r+32768)>>16,
			y + (-fixed(0.34414)*b-fixed(0.71414)*r+32768)>>16,
			y + (fixed(1.77200)*b+32768)>>16,
		}
		for c := range 3 {
			dst[3*i+c] = byte(max(0, min(255, v[c])))
		}
	}
}

// Every row kernel equals its formula, for every length, at odd addresses, and writes nothing else. Inputs end at an
// inaccessible page and start behind one, so that reading outside them is a fault.
func TestRowKernels(t *testing.T) {
	jpegLevels(t, func(t *testing.T, k *JPEG) {
		for name, c := range rowKernels {
			t.Run(name, func(t *testing.T) {
				r := jpegRand()
				for _, n := range rowLengths() {
					var src [3][]byte
					for i := range src {
						guarded := guardtest.Copy
						if i == n%3 {
							guarded = guardtest.CopyAfter
						}
						src[i] = guarded(t, sampleBytes(r, c.in(n)))
					}
					got, want := newCanvas(c.out(n)), make([]byte, c.out(n))
					c.run(k, got.out, src)
					c.want(want, src)
					if !bytes.Equal(got.out, want) {
						t.Fatalf("%d samples: got %v, want %v", n, got.out, want)
					}
					got.check(t)
				}
			})
		}
	})
}

// All 2^24 pixels at all levels: the colour arithmetic in 16 bits is exact.
func TestColorAll(t *testing.T) {
	jpegLevels(t, func(t *testing.T, k *JPEG) {
		var s [3][]byte
		for i := range s {
			s[i] = make([]byte, 256)
		}
		for i := range 256 {
			s[0][i] = byte(i)
		}
		got, want := make([]byte, 768), make([]byte, 768)
		for b := range 256 {
			for r := range 256 {
				for i := range 256 {
					s[1][i], s[2][i] = byte(b), byte(r)
				}
				k.Color(got, s[0], s[1], s[2])
				wantColor(want, s)
				if !bytes.Equal(got, want) {
					t.Fatalf("cb %d cr %d", b, r)
				}
			}
		}
	})
}

// Kernels refuse slices that are too short instead of reading or writing behind them.
func TestShortSlicesPanic(t *testing.T) {
	jpegLevels(t, func(t *testing.T, k *JPEG) {
		row := make([]byte, 400)
		cases := map[string]func(){
			"color dst":   func() { k.Color(row[:299:299], row[:100], row[:100], row[:100]) },
			"color cr":    func() { k.Color(row, row[:100], row[:100], row[:99:99]) },
			"grey dst":    func() { k.Grey(row[:299:299], row[:100]) },
			"h2v1 dst":    func() { k.H2V1(row[:199:199], row[:102]) },
			"h2v2 far":    func() { k.H2V2(row, row[:102], row[:101:101]) },
			"h1v2 far":    func() { k.H1V2(row, row[:102], row[:101:101], 1) },
			"unstuff":     func() { k.Unstuff(row[:99:99], row[:100]) },
			"idct dst":    func() { k.IDCT(row[:7*16+15:7*16+15], 16, make([]Block, 2), new([64]uint16)) },
			"idct odd":    func() { k.IDCT(row, 16, make([]Block, 1), new([64]uint16)) },
			"idct stride": func() { k.IDCT(row, 15, make([]Block, 2), new([64]uint16)) },
		}
		for name, f := range cases {
			t.Run(name, func(t *testing.T) {
				defer func() {
					if recover() == nil {
						t.Error("no panic")
					}
				}()
				f()
			})
		}
	})
}

// coefficients are those of a kind of block: of real pictures, sparse, wild.
func coefficients(r *rand.Rand, kind int) (b Block, q [64]uint16) {
	for i := range b {
		switch kind {
		case 0: // plausible
			q[i] = uint16(1 + r.IntN(60))
			b[i] = int16((r.IntN(201) - 100) / (1 + i))
		case 1: // only the first row, small or large: the flat first pass
			q[i] = uint16(1 + r.IntN(4))
			if i < 8 {
				b[i] = int16(r.Uint32()) >> r.IntN(16)
			}
		case 2: // a few wild ones
			q[i] = uint16(r.Uint32()) >> r.IntN(16)
			if r.IntN(10) == 0 {
				b[i] = int16(r.Uint32())
			}
		case 3: // extremes
			q[i] = []uint16{1, 2, 255, 32767, 32768, 65535}[r.IntN(6)]
			b[i] = []int16{-32768, -32767, -1, 0, 1, 32767}[r.IntN(6)]
		default: // anything
			q[i], b[i] = uint16(r.Uint32()), int16(r.Uint32())
		}
	}
	return b, q
}

func TestIDCT(t *testing.T) {
	for _, l := range Levels() {
		k := JPEGFor(l)
		t.Run(l, func(t *testing.T) {
			r := jpegRand()
			for i := range 6000 {
				checkIDCT(t, k, r, i)
			}
		})
	}
}

// checkIDCT compares a row of blocks of mixed kinds with wantIDCT.
func checkIDCT(t *testing.T, k *JPEG, r *rand.Rand, i int) {
	n := 2 * (1 + i%5)
	blocks := make([]Block, n)
	_, q := coefficients(r, i%5)
	for j := range blocks {
		blocks[j], _ = coefficients(r, (i+j*(i/5%3))%5)
	}
	stride := 8*n + i%7
	got := newCanvas(7*stride + 8*n)
	k.IDCT(got.out, stride, blocks, &q)
	got.check(t)
	for j := range blocks {
		want := wantIDCT(&blocks[j], &q)
		for p := range 64 {
			if v := got.out[p/8*stride+8*j+p%8]; v != want[p] {
				t.Fatalf("block %d of %v with %v: sample %d is %d, want %d", j, blocks[j], q, p, v, want[p])
			}
		}
	}
	for p := range got.out {
		if p%stride >= 8*n && got.out[p] != canvasFill {
			t.Fatal("written between rows")
		}
	}
}

// wantIDCT is the transform step by step as the contract of JPEG.IDCT has it, in 64-bit arithmetic with explicit wraps.
func wantIDCT(b *Block, q *[64]uint16) (out [64]byte) {
	wrap := func(v int64) int64 { return int64(int16(v)) }
	var t [64]int64
	acFree := true
	for i := range t {
		t[i] = wrap(int64(b[i]) * int64(int16(q[i])))
		acFree = acFree && (i < 8 || b[i] == 0)
	}
	line := func(at, step int, shift uint) {
		var in, o [8]int64
		for i := range in {
			in[i] = t[at+i*step]
		}
		c := func(f float64) int64 { return int64(math.Round(f * 8192)) }
		even := wrap(in[0]+in[4]) << 13
		diff := wrap(in[0]-in[4]) << 13
		z1 := (in[2] + in[6]) * c(0.541196100)
		t2, t3 := z1-in[6]*c(1.847759065), z1+in[2]*c(0.765366865)
		z3, z4 := wrap(in[7]+in[3]), wrap(in[5]+in[1])
		z5 := (z3 + z4) * c(1.175875602)
		z1, z2 := (in[7]+in[1])*-c(0.899976223), (in[5]+in[3])*-c(2.562915447)
		z3, z4 = z5-z3*c(1.961570560), z5-z4*c(0.390180644)
		odd := [4]int64{
			in[1]*c(1.501321110) + z1 + z4, in[3]*c(3.072711026) + z2 + z3,
			in[5]*c(2.053119869) + z2 + z4, in[7]*c(0.298631336) + z1 + z3,
		}
		for i, e := range [4]int64{even + t3, diff + t2, diff - t2, even - t3} {
			o[i], o[7-i] = e+odd[i], e-odd[i]
		}
		for i, v := range o {
			v = (v + 1<<(shift-1)) >> shift
			t[at+i*step] = max(-32768, min(32767, v))
		}
	}
	for c := range 8 {
		if acFree {
			for i := 7; i >= 0; i-- {
				t[8*i+c] = wrap(t[c] << 2)
			}
			continue
		}
		line(c, 8, 11)
	}
	for r := range 8 {
		line(8*r, 1, 18)
	}
	for i, v := range t {
		out[i] = byte(max(0, min(255, v+128)))
	}
	return out
}

// For blocks of real pictures the integer transform is within 1 of the real one.
func TestIDCTIsATransform(t *testing.T) {
	r := jpegRand()
	k := scalarJPEG()
	for range 200 {
		blocks := make([]Block, 2)
		var q [64]uint16
		blocks[0], q = coefficients(r, 0)
		var got [128]byte
		k.IDCT(got[:], 16, blocks, &q)
		for y := range 8 {
			for x := range 8 {
				sum := 128.0
				for v := range 8 {
					for u := range 8 {
						c := float64(blocks[0][8*v+u]) * float64(q[8*v+u]) / 4
						if u == 0 {
							c /= math.Sqrt2
						}
						if v == 0 {
							c /= math.Sqrt2
						}
						sum += c * math.Cos(float64(2*x+1)*float64(u)*math.Pi/16) * math.Cos(float64(2*y+1)*float64(v)*math.Pi/16)
					}
				}
				want := math.Max(0, math.Min(255, sum))
				if math.Abs(want-float64(got[16*y+x])) > 1 {
					t.Fatalf("sample %d,%d is %d, want %.2f", x, y, got[16*y+x], want)
				}
			}
		}
	}
}

// wantUnstuff is the rule of JPEG.Unstuff byte by byte.
func wantUnstuff(src []byte) (dst []byte, read int) {
	for i := 0; i < len(src); {
		if src[i] != 0xff {
			dst = append(dst, src[i])
			i++
			continue
		}
		j := i
		for j < len(src) && src[j] == 0xff {
			j++
		}
		if j == len(src) || src[j] != 0 {
			return dst, i
		}
		dst = append(dst, 0xff)
		i = j + 1
	}
	return dst, len(src)
}

func TestUnstuff(t *testing.T) {
	jpegLevels(t, func(t *testing.T, k *JPEG) {
		r := jpegRand()
		for i := range 4000 {
			n := r.IntN(300)
			src := make([]byte, n)
			density := []int{2, 5, 40, 1000}[i%4]
			for j := range src {
				src[j] = byte(r.Uint32())
				switch {
				case j > 0 && src[j-1] == 0xff && r.IntN(20) != 0:
					src[j] = 0
				case r.IntN(density) == 0:
					src[j] = 0xff
				}
			}
			src = guardtest.Copy(t, src)
			got := newCanvas(n)
			w, read := k.Unstuff(got.out, src)
			want, wantRead := wantUnstuff(src)
			if read != wantRead || !bytes.Equal(got.out[:w], want) {
				t.Fatalf("%x: got %x, read %d; want %x, %d", src, got.out[:w], read, want, wantRead)
			}
			got.check(t)
		}
	})
}

func TestJPEGForUnknownLevel(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	JPEGFor("neon9")
}

func BenchmarkJPEG(b *testing.B) {
	r := jpegRand()
	row := [3][]byte{sampleBytes(r, 402), sampleBytes(r, 402), sampleBytes(r, 402)}
	dst := make([]byte, 64*400)
	blocks := make([]Block, 48)
	_, q := coefficients(r, 0)
	for i := range blocks {
		blocks[i], _ = coefficients(r, 0)
	}
	data := make([]byte, 110_000)
	for i := range data {
		if data[i] = byte(r.Uint32()); i > 0 && data[i-1] == 0xff {
			data[i] = 0
		}
	}
	out := make([]byte, len(data))
	for _, l := range Levels() {
		k := JPEGFor(l)
		bench := func(name string, bytes int, f func()) {
			b.Run(fmt.Sprintf("%s/level=%s", name, l), func(b *testing.B) {
				b.SetBytes(int64(bytes))
				for b.Loop() {
					f()
				}
			})
		}
		bench("idct", 64*len(blocks), func() { k.IDCT(dst, 8*len(blocks), blocks, &q) })
		bench("color", 1200, func() { k.Color(dst, row[0][:400], row[1], row[2]) })
		bench("grey", 1200, func() { k.Grey(dst, row[0][:400]) })
		bench("h2v1", 800, func() { k.H2V1(dst, row[0]) })
		bench("h2v2", 800, func() { k.H2V2(dst, row[0], row[1]) })
		bench("h1v2", 400, func() { k.H1V2(dst, row[0][:400], row[1], 1) })
		bench("unstuff", len(data), func() { k.Unstuff(out, data) })
	}
}
