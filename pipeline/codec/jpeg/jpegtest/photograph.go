package jpegtest

import "github.com/feedwater-io/feedwater/pipeline/pixel"

// Photograph draws a picture of w x h pixels that has what a photograph has for a JPEG encoder: a slow gradient, objects with
// sharp and soft edges, surfaces of different roughness with noise whose power falls with frequency, and the sensor's
// noise. Pictures of one class share their colours and their kind of objects.
func Photograph(seed uint64, class, w, h int) *pixel.Image {
	r := newRandom(seed, uint64(class))
	s := newScene(r, newRandom(uint64(class), 0xc1a55), w, h)
	m := new(pixel.Image)
	m.Reset(w, h)
	for y := range h {
		s.row(m.Pix[y*m.Stride:][:3*w], y)
	}
	clear(m.Pix[h*m.Stride:])
	return m
}

// colour is three channels with 4 fractional bits.
type colour [3]int32

// surface is how a part of the picture looks.
type surface struct {
	colour colour
	rough  int32 // amplitude of the noise, 256 is full
	tint   int32 // the same of the colour's noise
}

type scene struct {
	w, h        int
	top, bottom surface
	objects     []object
	light       noise // brightness
	hue         noise // one colour axis
	sensor      *random
	grain       int32 // amplitude of the sensor's noise
	across      []surface
}

// newScene takes the look from the class's generator and the rest from the picture's.
func newScene(r, class *random, w, h int) *scene {
	s := &scene{w: w, h: h, sensor: r, grain: int32(r.between(8, 40))}
	palette := make([]surface, 6)
	for i := range palette {
		palette[i] = surface{rough: int32(class.between(20, 200)), tint: int32(class.between(0, 60))}
		for c := range 3 {
			palette[i].colour[c] = int32(16 * class.between(20, 235))
		}
	}
	pick := func() surface {
		p := palette[r.below(len(palette))]
		for c := range 3 {
			p.colour[c] += int32(16 * r.between(-20, 20))
		}
		p.rough = max(0, p.rough+int32(r.between(-40, 60)))
		return p
	}
	s.top, s.bottom = pick(), pick()
	round := class.between(1, 4)
	for range r.between(6, 20) {
		s.objects = append(s.objects, newObject(r, pick(), r.below(5) < round, w, h))
	}
	s.light = newNoise(r.next(), 7, r.between(5, 9), w)
	s.hue = newNoise(r.next(), 6, r.between(3, 6), w)
	s.across = make([]surface, w)
	return s
}

// row draws row y.
func (s *scene) row(out []byte, y int) {
	back := blend(s.top, s.bottom, int32(256*y/s.h))
	for x := range s.across {
		s.across[x] = back
	}
	for i := range s.objects {
		s.objects[i].draw(s.across, y)
	}
	light, hue := s.light.line(y), s.hue.line(y)
	for x, p := range s.across {
		l := light[x] * p.rough >> 8
		t := hue[x] * p.tint >> 8
		if x&7 == 0 {
			s.sensor.next()
		}
		grain := int32(int8(s.sensor.state>>(8*uint(x&7)))) * s.grain >> 7
		for c, tint := range [3]int32{t, -t >> 1, -t} {
			out[3*x+c] = byte(max(0, min(255, (p.colour[c]+l+tint+grain)>>4)))
		}
	}
}

// blend mixes two surfaces, 256 is all of b.
func blend(a, b surface, part int32) surface {
	mixed := func(a, b int32) int32 { return a + (b-a)*part>>8 }
	for c := range 3 {
		a.colour[c] = mixed(a.colour[c], b.colour[c])
	}
	a.rough, a.tint = mixed(a.rough, b.rough), mixed(a.tint, b.tint)
	return a
}

// object is an ellipse or a parallelogram.
type object struct {
	surface
	round          bool
	x, y           int // middle
	rx, ry         int // half the size
	slant          int // shift to the right per row, in 64ths
	soft           int // width of the edge in 1024ths of the size
	x0, x1, y0, y1 int
}

func newObject(r *random, look surface, round bool, w, h int) object {
	o := object{
		surface: look, round: round, x: r.below(w), y: r.below(h),
		rx: 2 + r.between(w/64, w/3), ry: 2 + r.between(h/64, h/3), slant: r.between(-48, 48), soft: 4,
	}
	if r.below(3) == 0 {
		o.soft = r.between(20, 400)
	}
	reach := o.ry*abs(o.slant)/64 + o.rx
	o.x0, o.x1 = max(0, o.x-reach), min(w, o.x+reach+1)
	o.y0, o.y1 = max(0, o.y-o.ry), min(h, o.y+o.ry+1)
	return o
}

// draw lays the object over row y.
func (o *object) draw(row []surface, y int) {
	if y < o.y0 || y >= o.y1 {
		return
	}
	v := 1024 * (y - o.y) / o.ry
	middle := o.x + (y-o.y)*o.slant/64
	step := 1024 << 10 / o.rx
	for x := o.x0; x < o.x1; x++ {
		inside := o.inside((x-middle)*step>>10, v)
		switch {
		case inside >= o.soft:
			row[x] = o.surface
		case inside > 0:
			row[x] = blend(row[x], o.surface, int32(256*inside/o.soft))
		}
	}
}

// inside is how far a point lies inside the shape, at most 1024; u and v are its place in 1024ths of the half sizes.
func (o *object) inside(u, v int) int {
	if o.round {
		return 1024 - int((int64(u)*int64(u)+int64(v)*int64(v))>>10)
	}
	return 1024 - max(abs(u), abs(v))
}

func abs(v int) int { return max(v, -v) }

// noise is a sum of octaves of smooth random values.
type noise struct {
	octaves []octave
	sum     []int32
}

// octave has a random value at each point of a grid, with smooth values between.
type octave struct {
	seed         uint64
	shift        int // the grid is 2^shift pixels wide
	amplitude    int32
	row          int     // of the grid, that upper is; -1: none yet
	upper, lower []int32 // the grid's values above and below the last row that was asked for
}

// newNoise makes n octaves: the first has a grid of 64 pixels, each of the others half of the one before. fall eighths of
// its strength are left from one to the next.
func newNoise(seed uint64, n, fall, w int) noise {
	s := noise{sum: make([]int32, w)}
	amplitude := int32(1024)
	for i := range n {
		shift := 6 - i
		points := w>>shift + 2
		s.octaves = append(s.octaves, octave{
			seed: mix(seed + uint64(i)), shift: shift, amplitude: amplitude, row: -1,
			upper: make([]int32, points), lower: make([]int32, points),
		})
		amplitude = amplitude * int32(fall) >> 3
	}
	return s
}

// line gives the noise along row y, with 4 fractional bits, most of it between -1000 and 1000. Rows are asked for in order.
func (n *noise) line(y int) []int32 {
	clear(n.sum)
	for i := range n.octaves {
		n.octaves[i].add(n.sum, y)
	}
	return n.sum
}

func (o *octave) add(sum []int32, y int) {
	size := 1 << o.shift
	o.move(y >> o.shift)
	fy := smooth[y&(size-1)<<(8-o.shift)]
	value := func(i int) int32 { return o.upper[i] + (o.lower[i]-o.upper[i])*fy>>8 }
	left := value(0)
	for x := 0; x < len(sum); x += size {
		right := value(x>>o.shift + 1)
		out := sum[x:min(x+size, len(sum))]
		for i := range out {
			out[i] += (left + (right-left)*smooth[i<<(8-o.shift)]>>8) * o.amplitude >> 10
		}
		left = right
	}
}

// move makes upper row y of the grid.
func (o *octave) move(y int) {
	if o.row == y {
		return
	}
	if o.row < 0 {
		o.fill(o.lower, y)
	}
	o.upper, o.lower = o.lower, o.upper
	o.fill(o.lower, y+1)
	o.row = y
}

func (o *octave) fill(row []int32, y int) {
	for x := range row {
		h := mix(o.seed ^ uint64(y)<<24 ^ uint64(x))
		row[x] = int32(h&1023) + int32(h>>10&1023) - 1023
	}
}

// smooth is 3t^2 - 2t^3 at t = i / 256, 256 is 1.
var smooth = func() (s [256]int32) {
	for i := range s {
		t := int32(i)
		s[i] = t * t * (768 - 2*t) >> 16
	}
	return s
}()
