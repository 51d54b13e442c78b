package raster

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// The ways to pad. All but constant continue the picture, as numpy.pad does.
const (
	PadConstant  = "constant"
	PadEdge      = "edge"
	PadReflect   = "reflect"
	PadSymmetric = "symmetric"
)

// A continuation is how the picture goes on beyond its sides: abc as aaabccc, cbabcba, or baabccb.
type continuation int

const (
	edge continuation = iota
	reflect
	symmetric
)

var continuations = map[string]continuation{PadEdge: edge, PadReflect: reflect, PadSymmetric: symmetric}

// sourceIndex is the coordinate in a side of n that stands at i.
func (c continuation) sourceIndex(i, n int) int {
	if 0 <= i && i < n {
		return i
	}
	switch {
	case c == edge || n == 1:
		return max(0, min(i, n-1))
	case c == reflect:
		period := 2 * (n - 1)
		i = max(i, -i) % period
		return min(i, period-i)
	default:
		i %= 2 * n
		if i < 0 {
			i += 2 * n
		}
		return min(i, 2*n-1-i)
	}
}

// ExtendTo makes the rectangle r of a picture that goes on outside in one of the modes but PadConstant.
func ExtendTo(r image.Rectangle, mode string) Effect {
	return Effect{Across: extendAcross, Numbers: [16]float64{float64(r.Min.X), float64(r.Min.Y), float64(continuations[mode])}}
}

// extendAcross makes the rectangle of dst's size at numbers 0 and 1 of a picture that goes on as number 2 says.
func extendAcross(e *Effect, _ *Workspace, dst, src *pixel.Image) {
	left, top, how := int(e.Numbers[0]), int(e.Numbers[1]), continuation(e.Numbers[2])
	begin, end := min(max(-left, 0), dst.W), max(min(src.W-left, dst.W), 0) // the columns that src has
	begin = min(begin, end)
	for y := range dst.H {
		to := dst.Pix[y*dst.Stride:][:3*dst.W]
		from := src.Pix[how.sourceIndex(y+top, src.H)*src.Stride:][:3*src.W]
		if begin < end {
			copy(to[3*begin:3*end], from[3*(begin+left):])
		}
		continueRow(to[:3*begin], from, left, how)
		continueRow(to[3*end:], from, left+end, how)
	}
}

// continueRow makes a row's pixels from x on, which src goes on to.
func continueRow(dst, src []byte, x int, how continuation) {
	for ; len(dst) >= 3; dst = dst[3:] {
		at := 3 * how.sourceIndex(x, len(src)/3)
		*(*[3]byte)(dst) = *(*[3]byte)(src[at:])
		x++
	}
}
