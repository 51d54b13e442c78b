package raster

import "github.com/feedwater-io/feedwater/pipeline/pixel"

// CompressJPEG is to a JPEG file and back as libjpeg-turbo does both when nothing but the quality, 1 to 100, is set:
// chroma of half the size, accurate integer transforms, smooth upsampling. Entropy coding loses nothing and is left
// out.
func CompressJPEG(quality int) Effect {
	return Effect{Across: compressPlanes, Numbers: [16]float64{float64(quality)}}
}

func compressPlanes(e *Effect, w *Workspace, dst, src *pixel.Image) {
	c := &w.jpeg
	c.beginPicture(w.Level, src.W, src.H)
	c.splitPixels(src)
	c.steps = [3][64]uint16{scaleQuantization(&lumaSteps, int(e.Numbers[0])), scaleQuantization(&chromaSteps, int(e.Numbers[0]))}
	c.steps[2] = c.steps[1]
	for i := range c.planes {
		c.planes[i].quantizeBlocks(c, &c.steps[i])
	}
	c.joinPlanes(dst)
}

// The quantization steps of ITU-T T.81, annex K.1, row by row, for quality 50.
var (
	lumaSteps = [64]uint8{
		16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62,
		18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
	}
	chromaSteps = [64]uint8{
		17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99, 99, 99, 99,
		99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
	}
)

// scaleQuantization scales steps by quality, as libjpeg does.
func scaleQuantization(steps *[64]uint8, quality int) (q [64]uint16) {
	percent := 200 - 2*quality
	if quality < 50 {
		percent = 5000 / quality
	}
	for i, s := range steps {
		q[i] = uint16(min(max((int(s)*percent+50)/100, 1), 255))
	}
	return q
}
