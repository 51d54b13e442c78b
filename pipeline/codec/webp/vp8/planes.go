package vp8

// What stands in the place of neighbours outside of the picture.
const (
	outsideAbove = 127
	outsideLeft  = 129
)

// plane is the samples of a picture's luma, Cb or Cr in whole macroblocks, with those of neighbours outside of the picture around them: a row
// above, and before each row a macroblock's columns, which are also behind the row above.
type plane struct {
	samples []byte
	side    int // of a macroblock
	stride  int
}

// makeRoom makes room for so many macroblocks. What the samples are is undefined then.
func (p *plane) makeRoom(side, columns, rows int) {
	p.side, p.stride = side, side*(columns+1)
	p.samples = grown(p.samples, (side*rows+1)*p.stride+side)
}

// at is where a sample is.
func (p *plane) at(x, y int) int { return (y+1)*p.stride + p.side + x }

// row is a row of samples.
func (p *plane) row(y int) []byte { return p.samples[p.at(0, y) : p.at(0, y+1)-p.side] }

// block is how far behind a macroblock's first sample that of one of its blocks is, so many of which are beside each other.
func (p *plane) block(i, columns int) int { return i/columns*blockSide*p.stride + i%columns*blockSide }

// beginRow sets what is around a row of macroblocks.
func (p *plane) beginRow(y int) {
	top, behind := p.side*y, p.at(0, p.side*y)-p.side
	if y == 0 {
		fill(p.samples[:behind+blockSide], outsideAbove)
	} else {
		fill(p.samples[behind:][:blockSide], p.samples[behind-1])
	}
	for i := range p.side {
		p.samples[p.at(-1, top+i)] = outsideLeft
	}
}

func fill(p []byte, v byte) {
	for i := range p {
		p[i] = v
	}
}

// picture is the planes of a picture.
type picture struct{ luma, cb, cr plane }

// planes are all of them.
func (p *picture) planes() [3]*plane { return [3]*plane{&p.luma, &p.cb, &p.cr} }

// makeRoom makes room for so many macroblocks. What the samples are is undefined then.
func (p *picture) makeRoom(columns, rows int) {
	p.luma.makeRoom(16, columns, rows)
	p.cb.makeRoom(8, columns, rows)
	p.cr.makeRoom(8, columns, rows)
}

// macroblock points at a macroblock, all of which the planes have.
func (p *picture) macroblock(x, y int) (luma, cb, cr *byte) {
	at, c := p.luma.at(16*x, 16*y), p.cb.at(8*x, 8*y)
	_, _, _ = p.luma.samples[at+15*p.luma.stride+15], p.cb.samples[c+7*p.cb.stride+7], p.cr.samples[c+7*p.cr.stride+7]
	return &p.luma.samples[at], &p.cb.samples[c], &p.cr.samples[c]
}
