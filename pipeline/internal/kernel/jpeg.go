package kernel

import (
	"fmt"
	"slices"
)

// Block holds the 64 coefficients of a block, row by row.
type Block [64]int16

// JPEG is the kernels of a JPEG decoder at one level. They read and write nothing outside the slices they are given,
// and panic where a slice is too short. They are safe for concurrent use; output must not overlap input.
type JPEG struct {
	// Level is the level's name.
	Level string

	// Least is the fewest samples, at most 32, for which H2V1, H2V2 and H1V2 are fast: fewer take longer.
	Least int

	// IDCT makes samples of a row of neighbouring blocks: 8 rows of 8*len(blocks) bytes, row i at dst[i*stride].
	// The number of blocks is even. Coefficients are multiplied by q first. The transform is libjpeg's accurate integer
	// one as its x86 vector code computes it, which differs from the C code on damaged data only: products and the sums
	// in0+-in4, in7+in3, in5+in1 wrap to 16 bits, both passes saturate to 16 bits, and where rows 1 to 7 of a block
	// are zero the first pass is a left shift that wraps.
	IDCT func(dst []byte, stride int, blocks []Block, q *[64]uint16)

	// Color makes len(y) RGB pixels of YCbCr: r = y + 1.402 cr, g = y - 0.344136 cb - 0.714136 cr, b = y + 1.772 cb
	// with 16 fractional bits, rounded, clamped.
	Color func(dst, y, cb, cr []byte)

	// Grey makes len(y) RGB pixels that have y in all three channels.
	Grey func(dst, y []byte)

	// H2V1 doubles a row in width. src is the row and one neighbour on either side; dst has 2*(len(src)-2) samples,
	// (3 own + left + 1) / 4 and (3 own + right + 2) / 4.
	H2V1 func(dst, src []byte)

	// H2V2 makes one row of the doubled picture of the row near and the next nearest row far, each with one neighbour
	// on either side: with s = 3 near + far, (3 own s + left s + 8) / 16 and (3 own s + right s + 7) / 16.
	H2V2 func(dst, near, far []byte)

	// H1V2 makes one row of a picture doubled in height: (3 near + far + bias) / 4. bias is 1 where far lies above
	// near and 2 where it lies below.
	H1V2 func(dst, near, far []byte, bias uint16)

	// Unstuff copies entropy-coded bytes up to the first marker or the end of src. Of 0xFF ... 0xFF 0 it keeps one
	// 0xFF. It returns the bytes written and the bytes read: src[read:] starts with a marker's first 0xFF, or with 0xFF
	// bytes up to the end, or is empty. dst has at least len(src) bytes; what lies between written and len(src) is
	// undefined.
	Unstuff func(dst, src []byte) (written, read int)
}

// JPEGFor returns the kernels of a level. It panics if the level is not one of Levels.
func JPEGFor(level string) *JPEG {
	switch {
	case !slices.Contains(Levels(), level):
		panic(fmt.Sprintf("kernel: level %q, this processor can run %v", level, Levels()))
	case level == Scalar:
		return scalarJPEG()
	case level == AVX512:
		return wideJPEG()
	default:
		return vectorJPEG()
	}
}

func scalarJPEG() *JPEG {
	return &JPEG{
		Level: Scalar, Least: 1, IDCT: idctScalar, Color: colorScalar, Grey: greyScalar,
		H2V1: h2v1Scalar, H2V2: h2v2Scalar, H1V2: h1v2Scalar, Unstuff: unstuffScalar,
	}
}

// idctRoom panics if dst cannot take the samples of n blocks.
func idctRoom(dst []byte, stride, n int) {
	if n%2 != 0 || stride < 8*n {
		panic(fmt.Sprintf("kernel: idct of %d blocks with stride %d", n, stride))
	}
	_ = dst[:7*stride+8*n]
}
