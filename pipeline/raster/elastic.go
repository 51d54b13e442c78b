package raster

import (
	"math"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// An elasticWarp moves every pixel by two displacements, as torchvision's elastic_image does. How far is known to
// within reach pixels; where that could decide a value, the displacements are made as exactly as torch makes them.
type elasticWarp struct {
	fields   [2]displacementField // along x, along y
	src      *pixel.Image
	bilinear bool
	fill     fillTensor
	point    [1]sourcePoint32
}

// Displace moves every pixel by two smoothed fields of noise, along x and along y: by up to alpha, smoothed by sigma
// pixels. The picture has to be larger than half of ElasticTaps.
func Displace(alpha, sigma [2]float64, s Sampling, g RNG) Effect {
	e := Effect{Across: stretchElastic, RNG: g, Numbers: [16]float64{alpha[0], alpha[1], sigma[0], sigma[1]}}
	if s.Interpolation == "bilinear" {
		e.Numbers[4] = 1
	}
	for _, x := range sigma {
		e.Steps += ElasticTaps(x) * ElasticTaps(x)
	}
	e.setFill(s.Fill)
	return e
}

func stretchElastic(e *Effect, w *Workspace, dst, src *pixel.Image) {
	s := elasticWarp{src: src, bilinear: e.Numbers[4] != 0, fill: e.fillTensor()}
	columns, rows := s.prepareFields(e, w)
	for y := 0; y < src.H && !w.IsStopped(); y++ {
		s.warpRow(dst.Row(y), y, columns, rows[y])
	}
}

// prepareFields divides the workspace. It returns the places of columns and rows, from −1 to 1.
func (s *elasticWarp) prepareFields(e *Effect, w *Workspace) (columns, rows []float32) {
	width, height := s.src.W, s.src.H
	size := width + height
	for k, side := range [2]int{width, height} {
		s.fields[k] = displacementField{
			rng: e.RNG, first: uint32(k) << 28, w: width, h: height, //nolint:gosec // 0 or 1
			n: ElasticTaps(e.Numbers[2+k]), alpha: float32(e.Numbers[k]), side: side,
		}
		size += s.fields[k].floatsNeeded()
	}
	w.floats = pixel.Grow(w.floats, size)
	columns, rows = w.floats[:width], w.floats[width:width+height]
	fillLinspace(columns, float32(float64(1-width)/float64(width)), float32(float64(width-1)/float64(width)))
	fillLinspace(rows, float32(float64(1-height)/float64(height)), float32(float64(height-1)/float64(height)))
	free := w.floats[width+height:]
	for k := range s.fields {
		free = s.fields[k].prepareKernels(free, e.Numbers[2], e.Numbers[3])
	}
	return columns, rows
}

// warpRow makes row y, whose place is at.
func (s *elasticWarp) warpRow(row []byte, y int, columns []float32, at float32) {
	alongX, alongY := &s.fields[0], &s.fields[1]
	dx, dy := alongX.smoothRow(y), alongY.smoothRow(y)
	for x := range dx {
		out := row[3*x:][:3]
		if !s.samplePixelIfSure(out, sourcePoint32{alongX.sourceCoordinate(columns[x], dx[x]), alongY.sourceCoordinate(at, dy[x])}) {
			s.samplePixel(out, sourcePoint32{alongX.sourceCoordinate(columns[x], alongX.exactValue(x, y)), alongY.sourceCoordinate(at, alongY.exactValue(x, y))})
		}
	}
}

// samplePixel makes a pixel as torch does.
func (s *elasticWarp) samplePixel(out []byte, p sourcePoint32) {
	s.point[0] = p
	if s.bilinear {
		s.fill.sampleBilinear(out, s.src, s.point[:])
	} else {
		sampleNearest(out, s.src, s.point[:], s.fill.paint)
	}
}

// samplePixelIfSure makes a pixel of what lies at about p, and returns false where another place within reach could be
// another value.
func (s *elasticWarp) samplePixelIfSure(out []byte, p sourcePoint32) bool {
	rx, ry := s.fields[0].reach, s.fields[1].reach
	if !s.bilinear {
		s.samplePixel(out, p)
		return !nearWhole(p.x+0.5, rx) && !nearWhole(p.y+0.5, ry)
	}
	src := s.src
	if p.x < -1-rx || p.x > float32(src.W)+rx || p.y < -1-ry || p.y > float32(src.H)+ry {
		out[0], out[1], out[2] = s.fill.paint[0], s.fill.paint[1], s.fill.paint[2]
		return true
	}
	if nearWhole(p.x, rx) || nearWhole(p.y, ry) {
		return false
	}
	west, north := floor32(p.x), floor32(p.y)
	shares := weightsOf(p.x-float32(west), p.y-float32(north))
	if west < 0 || west >= src.W-1 || north < 0 || north >= src.H-1 {
		return s.sampleEdgeIfSure(out, &shares, west, north)
	}
	o := north*src.Stride + 3*west
	a, b := src.Pix[o:][:6], src.Pix[o+src.Stride:][:6]
	for c := range 3 {
		v := shares.mixValues(a[c], a[c+3], b[c], b[c+3])
		across := max(absoluteDifference(a[c], a[c+3]), absoluteDifference(b[c], b[c+3]))
		down := max(absoluteDifference(a[c], b[c]), absoluteDifference(a[c+3], b[c+3]))
		whole := int32(v + 0.5)
		if margin := float32(across*rx) + float32(down*ry) + 0x1p-12; nearEnds(v+0.5-float32(whole), margin) {
			return false
		}
		out[c] = byte(whole)
	}
	return true
}

// sampleEdgeIfSure is sure where some neighbours are missing. What they would add goes from all to nothing within a
// pixel.
func (s *elasticWarp) sampleEdgeIfSure(out []byte, shares *bilinearWeights, west, north int) bool {
	margin := float32(510*(s.fields[0].reach+s.fields[1].reach)) + 0x1p-12
	var taps [4][3]byte
	mask := float32(0)
	for k := range taps {
		x, y := west+k&1, north+k>>1
		if x >= 0 && x < s.src.W && y >= 0 && y < s.src.H {
			taps[k] = [3]byte(s.src.Pix[y*s.src.Stride+3*x:])
			mask += shares[k]
		}
	}
	for c := range 3 {
		v := shares.mixValues(taps[0][c], taps[1][c], taps[2][c], taps[3][c])
		if s.fill.given {
			v = float32(float32(v-s.fill.fill[c])*mask) + s.fill.fill[c]
		}
		whole := int32(v + 0.5)
		if nearEnds(v+0.5-float32(whole), margin) {
			return false
		}
		out[c] = byte(whole)
	}
	return true
}

// nearWhole reports whether x is within reach of a whole number.
func nearWhole(x, reach float32) bool {
	return nearEnds(x-float32(math.Floor(float64(x))), reach)
}

// nearEnds reports whether a rest, from 0 to 1, is within reach of 0 or 1.
func nearEnds(rest, reach float32) bool { return rest < reach || rest > 1-reach }

func absoluteDifference(a, b byte) float32 { return float32(max(a, b) - min(a, b)) }

// ElasticTaps is how many taps torchvision smooths noise by: those within 4·sigma, an odd number.
func ElasticTaps(sigma float64) int { return int(float64(8*sigma)+1) | 1 }
