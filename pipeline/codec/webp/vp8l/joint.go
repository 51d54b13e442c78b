package vp8l

import "slices"

// How many bits select an entry of a joint's tables.
const (
	greenBits = 9
	restBits  = 10
)

// joint is the tables of a group as the assembly reads them.
type joint struct {
	greens [1 << greenBits]entry // by isLiteral and isLong
	rest   [1 << restBits]entry  // red, blue and alpha at once, by restLacksBlue and restLacksAll
	blues  [1 << rootBits]entry
	roots  [alpha + 1]uint32 // where the tables of the codes begin, in bytes
}

// What greens say beside the bits. The symbol is that of a literal, with isLiteral, or the place in the cache. With isLong the entry is that of the
// code's own table, which names a further one, and where no code is longer than rootBits a copy comes.
const (
	isLiteral = 1 << maxCacheBits << 16
	isLong    = 1 << 31
)

// Rest has its bits lowest, then red, alpha and blue. Where blue is not among them there are only the bits of red; or there is nothing.
const (
	restLacksBlue = 0x80
	restLacksAll  = 0x40
)

// leastForJoint is how many pixels a group must have on the mean for joints to be worth their making.
const leastForJoint = 4096

// join makes the joints of all groups, and behind them one for pixels of the cache, which have no further codes.
func (s *stream) join() {
	d, n := s.decoder, len(s.groups)
	d.joints = slices.Grow(d.joints[:0], n+1)[:n+1]
	for i := range s.groups {
		d.joints[i].set(&s.groups[i], &s.places[i])
	}
	d.joints[n] = joint{}
}

func (j *joint) set(g *group, at *place) {
	j.setGreens(g.tables[green])
	j.setRest(g)
	copy(j.blues[:], g.tables[blue])
	for code := range j.roots {
		j.roots[code] = uint32(4 * at[code])
	}
}

func (j *joint) setGreens(table []entry) {
	for bits, root := range (*rootTable)(table) {
		e := greenEntry(root)
		for i := bits; i < len(j.greens); i += 1 << rootBits {
			j.greens[i] = e
			if root.bits() <= rootBits {
				continue
			}
			j.greens[i] = root | isLong
			if long := further(table, root, uint64(i)); long.bits() <= greenBits {
				j.greens[i] = greenEntry(long)
			}
		}
	}
}

// greenEntry is the entry of greens for one that names no further table.
func greenEntry(e entry) entry {
	switch symbol := e.symbol(); {
	case symbol < literals:
		return e | isLiteral
	case symbol < literals+lengthCodes:
		return isLong
	}
	return e - (literals+lengthCodes)<<16
}

func (j *joint) setRest(g *group) {
	reds, blues, alphas := (*rootTable)(g.tables[red]), (*rootTable)(g.tables[blue]), (*rootTable)(g.tables[alpha])
	opaque := g.isSingle(alpha)
	for i := range j.rest {
		r := reds[i&(1<<rootBits-1)]
		if r.bits() > rootBits {
			r = further(g.tables[red], r, uint64(i))
		}
		b := blues[i>>(r&maxShift)&(1<<rootBits-1)]
		a := alphas[i>>(r&maxShift)>>(b&maxShift)&(1<<rootBits-1)]
		e, n := r>>16<<8|a&^0xffff, r.bits()+b.bits()+a.bits()
		switch {
		case n <= restBits && b.bits() <= rootBits && a.bits() <= rootBits:
			e |= b>>16<<24 | entry(n)
		case r.bits() <= restBits && opaque:
			e |= entry(r.bits()) | restLacksBlue
		default:
			e = restLacksBlue | restLacksAll
		}
		j.rest[i] = e
	}
}

// readRow reads pixels of a row from column x on, each by a literal or by the cache, and returns how many: fewer than there are where a copy comes next,
// or the last bytes of the data.
func (s *stream) readRow(p *picture, colors *cache, pix []uint32, i, x, y int) int {
	r, d := &s.bits, s.decoder
	from := r.place()
	if from>>3+leastForRow > len(r.data) {
		return 0
	}
	colors.insertUpTo(pix, i)
	groups, shift := &theOnlyGroup, 63
	if p.groupOf != nil {
		groups, shift = &p.groupOf[y>>p.groupBits*p.groupStride], p.groupBits
	}
	pix = pix[i:][:p.w-x]
	n, at := readLiterals(&r.data[0], len(r.data), from, (*uint32)(&d.joints[0].greens[0]), (*uint32)(&d.joints[len(p.groups)].greens[0]),
		(*uint32)(&d.tables.entries[0]), groups, shift, &d.colors[0], colors.shift, &pix[0], x, p.w)
	r.seek(at)
	colors.done = i + n
	return n
}

// leastForRow is how many bytes of data readLiterals begins with.
const leastForRow = 8 + 4*4*7

// theOnlyGroup is an image of groups where there is one group.
var theOnlyGroup uint32
