package resize

import (
	"image"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/internal/plain"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// crops are typical training crops of a 500×375 photograph; kind chooses those whose vertical pass comes first, the
// others, or all.
func crops(kind string) (c []image.Point) {
	r := rand.New(rand.NewPCG(7, 7))
	for n := 0; n < 64; {
		area := 500 * 375 * (0.08 + 0.92*r.Float64())
		ratio := math.Exp((2*r.Float64() - 1) * math.Log(4.0/3))
		p := image.Pt(int(math.RoundToEven(math.Sqrt(area*ratio))), int(math.RoundToEven(math.Sqrt(area/ratio))))
		if p.X > 500 || p.Y > 375 {
			continue
		}
		n++
		if kind == "all" || Pillow13.verticalFirst(p, image.Pt(224, 224)) == (kind == "tall") {
			c = append(c, p)
		}
	}
	return c
}

// BenchmarkResampler makes 224×224 pixels of crops that come 16 rows at a time.
func BenchmarkResampler(b *testing.B) {
	const stride, batch = 1536, 16
	src := plain.RandomPicture(rand.New(rand.NewPCG(1, 1)), stride/3, 375).Pix
	src = append(src, make([]byte, pixel.Pad)...)
	dst := make([]byte, 3*224*224)
	for _, level := range kernel.Levels() {
		for _, ref := range []Reference{Pillow13, Pillow12} {
			for _, kind := range []string{"all", "tall", "wide"} {
				b.Run("level="+level+"/reference="+string(ref)+"/crops="+kind, func(b *testing.B) {
					rs, sizes := NewResampler(level, ref), crops(kind)
					b.ReportAllocs()
					for i := range b.N {
						from := sizes[i%len(sizes)]
						rs.Begin(Window{From: from, To: image.Pt(224, 224), Rect: image.Rect(0, 0, 224, 224), Flip: Flips{X: i&1 == 1}}, dst, 3*224)
						for y := 0; y < from.Y; y += batch {
							rs.Rows(src[y*stride:], stride, min(batch, from.Y-y))
						}
					}
				})
			}
		}
	}
}
