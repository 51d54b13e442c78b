package raster

import (
	"fmt"
	"image"
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/internal/plain"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

func BenchmarkWarp(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, size := range []image.Point{{224, 224}, {500, 375}} {
		src, dst := plain.RandomImage(r, size.X, size.Y), &pixel.Image{}
		dst.Reset(size.X, size.Y)
		turned, _ := RotationMatrix(17, size, false, nil)
		sheared := Affinity{Scale: 1, Shear: [2]float64{0, 9}}.InverseMatrix(&[2]float64{})
		moved := Affinity{Scale: 1, Translate: [2]int{9, 7}}.InverseMatrix(&[2]float64{112, 112})
		smaller := Affinity{Scale: 0.95, Angle: 8, Translate: [2]int{9, 7}}.InverseMatrix(&[2]float64{112, 112})
		tilted := turned
		tilted[6], tilted[7] = 1e-4, 2e-4
		for name, m := range map[string]Matrix{"rotate": turned, "affine": smaller, "shear": sheared, "translate": moved, "perspective": tilted} {
			for _, filter := range []string{"nearest", "bilinear", "bicubic"} {
				e, w := Warp(m, Sampling{Interpolation: filter}, size), &Workspace{Level: kernel.Levels()[0]}
				b.Run(fmt.Sprintf("%dx%d/%s/%s", size.X, size.Y, name, filter), func(b *testing.B) {
					for b.Loop() {
						e.Across(&e, w, dst, src)
					}
				})
			}
		}
	}
}
