package raster

import (
	"image"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/plain"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// reference is warp, one pixel after the other.
func reference(m Matrix, b Sampling, to image.Point, src *pixel.Image) plain.Picture {
	q := plain.NewPicture(to.X, to.Y)
	straight := m[1] == 0 && m[3] == 0
	projective := m[6] != 0 || m[7] != 0
	var addX, addY float64
	for j := range to.Y {
		addX, addY = m[2]+float64(m[1]*0.5)+float64(m[0]*0.5), m[5]+float64(m[4]*0.5)+float64(m[3]*0.5)
		for range j {
			addX, addY = addX+m[1], addY+m[4]
		}
		for i := range to.X {
			u, v := float64(i)+0.5, float64(j)+0.5
			x, y := m.mapPoint(u, v)
			d := float64(m[6]*u) + float64(m[7]*v) + 1
			x, y = x/d, y/d
			switch {
			case b.Interpolation != "nearest" || projective:
			case straight || !m.fitsFixedPoint(to):
				x, y = addX, addY
			default:
				fx := toFixedPoint(m[2]+float64(m[0]*0.5)+float64(m[1]*0.5)) + i*toFixedPoint(m[0]) + j*toFixedPoint(m[1])
				fy := toFixedPoint(m[5]+float64(m[3]*0.5)+float64(m[4]*0.5)) + i*toFixedPoint(m[3]) + j*toFixedPoint(m[4])
				x, y = math.Floor(float64(fx)/one), math.Floor(float64(fy)/one)
			}
			addX, addY = addX+m[0], addY+m[3]
			for c := range 3 {
				if x < 0 || y < 0 || x >= float64(src.W) || y >= float64(src.H) {
					if b.Fill != nil {
						q.Pix[3*(j*to.X+i)+c] = byte(b.Fill[c])
					}
					continue
				}
				q.Pix[3*(j*to.X+i)+c] = warped(src, b.Interpolation, x, y, c)
			}
		}
	}
	return q
}

func warped(src *pixel.Image, interpolation string, x, y float64, c int) byte {
	at := func(x, y int) float64 {
		return float64(src.Pix[min(max(y, 0), src.H-1)*src.Stride+3*min(max(x, 0), src.W-1)+c])
	}
	if interpolation == "nearest" {
		return byte(at(int(x), int(y)))
	}
	x, y = x-0.5, y-0.5
	i, j := int(math.Floor(x)), int(math.Floor(y))
	dx, dy := x-math.Floor(x), y-math.Floor(y)
	if interpolation == "bilinear" {
		upper := at(i, j) + float64((at(i+1, j)-at(i, j))*dx)
		lower := at(i, j+1) + float64((at(i+1, j+1)-at(i, j+1))*dx)
		return byte(int(upper + float64((lower-upper)*dy)))
	}
	var v [4]float64
	for k := range v {
		v[k] = interpolateCubic(at(i-1, j+k-1), at(i, j+k-1), at(i+1, j+k-1), at(i+2, j+k-1), dx)
	}
	return byte(int(min(max(interpolateCubic(v[0], v[1], v[2], v[3], dy), 0), 255)))
}

func TestWarpsEqualThePlainReference(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	ways := map[string]int{}
	var w Workspace
	for range 4000 {
		src := plain.RandomImage(r, 1+r.IntN(24), 1+r.IntN(24))
		to := image.Pt(1+r.IntN(24), 1+r.IntN(24))
		m, way := randomMatrix(r)
		ways[way]++
		for _, name := range []string{"nearest", "bilinear", "bicubic"} {
			b := Sampling{Interpolation: name, Fill: &[3]float64{float64(r.IntN(256)), 200.9, 7}}
			if r.IntN(3) == 0 {
				b.Fill = nil
			}
			e := Warp(m, b, to)
			got := plain.NewPicture(to.X, to.Y)
			stride := 3*to.X + r.IntN(9)
			dst := make([]byte, (to.Y-1)*stride+3*to.X)
			e.Across(&e, &w, &pixel.Image{Pix: dst, W: to.X, H: to.Y, Stride: stride}, src)
			for y := range to.Y {
				copy(got.Pix[3*y*to.X:][:3*to.X], dst[y*stride:])
			}
			if want := reference(m, b, to, src); !got.Equal(want) {
				t.Fatalf("%s, %s, %d×%d to %v by %v differs", way, name, src.W, src.H, to, m)
			}
		}
	}
	if len(ways) != 6 {
		t.Error(ways)
	}
}

func randomMatrix(r *rand.Rand) (Matrix, string) {
	n := func() float64 { return r.NormFloat64() }
	offset := func() float64 { return float64(r.IntN(41)-20) / float64(1+r.IntN(2)) }
	switch r.IntN(6) {
	case 0:
		return Matrix{1, 0, offset(), 0, 1, offset()}, "shift"
	case 1:
		return Matrix{1, n(), offset(), 0, 1 + n(), 3 * n()}, "shear"
	case 2:
		return Matrix{n(), 0, 5 * n(), 0, n(), 5 * n()}, "scale"
	case 3:
		return Matrix{n() * 1e5, n(), n(), n(), n(), 20 * n()}, "beyond fixed point"
	case 4:
		return Matrix{1 + n()/3, n() / 3, 3 * n(), n() / 3, 1 + n()/3, 3 * n(), n() / 50, n() / 50}, "perspective"
	}
	return Matrix{n(), n(), 9 * n(), n(), n(), 9 * n()}, "affine"
}

func TestQuarterTurns(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	src := plain.RandomImage(r, 7, 5)
	for angle, from := range map[float64]func(i, j int) (x, y int){
		90:  func(i, j int) (x, y int) { return 6 - j, i },
		270: func(i, j int) (x, y int) { return j, 4 - i },
	} {
		dst := &pixel.Image{}
		dst.Reset(5, 7)
		e := TurnQuarter(angle)
		e.Across(&e, nil, dst, src)
		for j := range 7 {
			for i := range 5 {
				x, y := from(i, j)
				if [3]byte(dst.Pix[j*dst.Stride+3*i:]) != [3]byte(src.Pix[y*src.Stride+3*x:]) {
					t.Fatalf("%v: %d, %d", angle, i, j)
				}
			}
		}
	}
}
