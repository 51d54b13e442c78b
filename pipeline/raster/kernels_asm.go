//go:build amd64 && !purego

package raster

import (
	"golang.org/x/sys/cpu"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

//go:generate go -C ../internal/kernel/_gen run ./raster -out ../../../raster/kernels_amd64.s -stubs ../../../raster/kernels_stubs_amd64.go -pkg raster
//go:generate go -C ../internal/kernel/_gen run ./raster -avx512 -out ../../../raster/kernels_avx512_amd64.s -stubs ../../../raster/kernels_avx512_stubs_amd64.go -pkg raster

// hasFused tells whether kernels of a level may add products with one rounding.
func hasFused(level string) bool { return kernel.Vector(level) && cpu.X86.HasFMA }
