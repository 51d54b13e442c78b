// Package pixel holds the image value that transforms get from codecs, and the contract between a stage that
// makes rows and the stage that takes them. It starts no goroutine and imports nothing of ours.
package pixel

// Pad is how many bytes behind the last pixel of a row buffer must exist: vector kernels may read them, and never use
// what they read.
const Pad = 64

// Image is 8-bit RGB, interleaved: pixel (x, y) is Pix[y*Stride+3*x:][:3]. len(Pix) is at least
// (H-1)*Stride + 3*W + Pad. Whoever made an Image owns it; nothing here keeps a reference.
type Image struct {
	Pix          []byte
	W, H, Stride int
}

// Reset makes m a w×h image, reusing its memory where that is large enough. The pixels are undefined.
func (m *Image) Reset(w, h int) {
	m.W, m.H, m.Stride = w, h, 3*w
	m.Pix = Grow(m.Pix, h*m.Stride+Pad)
}

// Row returns the pixels of row y.
func (m *Image) Row(y int) []byte { return m.Pix[y*m.Stride:][:3*m.W] }

// Grow returns s with length n, or new memory where s has too little. The values are undefined.
func Grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// A Sink takes the rows of an image from top to bottom.
type Sink interface {
	// Rows takes the next n rows, row i at pix[i*stride:]. pix has Pad bytes behind the last pixel and is valid
	// until Rows returns.
	Rows(pix []byte, stride, n int)
}
