package vp8

// The modes by which pixels are predicted: of macroblocks the first four, of blocks of 4×4 all.
const (
	modeDC = iota
	modeTrueMotion
	modeVertical
	modeHorizontal
	modeRightDown
	modeVerticalRight
	modeLeftDown
	modeVerticalLeft
	modeHorizontalDown
	modeHorizontalUp
	blockModes
)

// modes are those of a macroblock.
type modes struct {
	segment  uint8
	skipped  bool // it has no coefficients
	byBlocks bool // its luma is predicted block by block
	luma     uint8
	blocks   [16]uint8
	chroma   uint8
}

// readModes reads the modes of macroblock x of a row (sections 10 and 11).
func (d *Decoder) readModes(m *modes, x int) {
	p, s := &d.first, &d.segment
	m.segment = 0
	if s.mapped {
		if !p.flag(s.probabilities[0]) {
			m.segment = number(p.flag(s.probabilities[1]))
		} else {
			m.segment = 2 + number(p.flag(s.probabilities[2]))
		}
	}
	m.skipped = d.skips && p.flag(d.skipProbability)
	above, left := (*[4]uint8)(d.modesAbove[4*x:]), &d.modesLeft
	if m.byBlocks = !p.flag(145); m.byBlocks {
		d.readBlockModes(m, above, left)
	} else {
		m.luma = readLumaMode(p)
		for i := range above {
			above[i], left[i] = m.luma, m.luma
		}
	}
	m.chroma = readChromaMode(p)
}

func number(one bool) uint8 {
	if one {
		return 1
	}
	return 0
}

func readLumaMode(p *partition) uint8 {
	if p.flag(156) {
		if p.flag(128) {
			return modeTrueMotion
		}
		return modeHorizontal
	}
	if p.flag(163) {
		return modeVertical
	}
	return modeDC
}

func readChromaMode(p *partition) uint8 {
	switch {
	case !p.flag(142):
		return modeDC
	case !p.flag(114):
		return modeVertical
	case p.flag(183):
		return modeTrueMotion
	}
	return modeHorizontal
}

// blockModeTree has a pair for each bit of a block's mode: what follows where it is zero, and one. Negative is less a mode, else the next bit.
var blockModeTree = [18]int8{
	-modeDC, 1, -modeTrueMotion, 2, -modeVertical, 3, 4, 6, -modeHorizontal, 5, -modeRightDown, -modeVerticalRight,
	-modeLeftDown, 7, -modeVerticalLeft, 8, -modeHorizontalDown, -modeHorizontalUp,
}

func (d *Decoder) readBlockModes(m *modes, above, left *[4]uint8) {
	p := &d.first
	if d.kernels.vector && p.has(leastForModes) {
		readBlockModes(&p.value, &modeProbabilities[0][0][0], &m.blocks[0], &above[0], &left[0])
		return
	}
	w := p.window
	for y := range left {
		mode := left[y]
		for x := range above {
			probabilities := &modeProbabilities[above[x]][mode]
			i := int8(0)
			for {
				var one uint32
				w, one = p.number(w, probabilities[i])
				if i = blockModeTree[2*int(i)+int(one)]; i <= 0 {
					break
				}
			}
			mode = uint8(-i)
			above[x], m.blocks[4*y+x] = mode, mode
		}
		left[y] = mode
	}
	p.window = w
}
