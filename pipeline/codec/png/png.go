// Package png decodes regions of PNG files to RGB rows. It gives the bytes of Pillow's convert("RGB") and refuses what Pillow
// refuses: transparency is dropped, not blended; colour profiles, gamma and orientation are ignored; of 16 bits the upper eight
// remain, but 16-bit grey is cut at 255; of an animation the first frame remains.
//
// A file passes three stages. The reader walks the chunks in front of the data. The inflater decompresses the data, row by row
// and no further than the last row. The output stage undoes the filters and makes RGB. The whole file is decompressed whatever
// the region, since damage anywhere decides the verdict; but for interlaced files no more than two rows are held. Text and
// profiles are never decompressed. The package starts no goroutine.
//
// Files whose rows come in order take a faster way, which says yes or nothing: where all of a file is in order beyond doubt,
// the verdict is clear. Else the stages begin again, and leave out the rows that the sink has already.
package png

import (
	"errors"
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/codec/internal/strip"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// The verdicts. Every error of a Decoder that is about the file wraps one of them.
var (
	// ErrTruncated: the file ends before the picture does.
	ErrTruncated = errors.New("truncated PNG")
	// ErrBroken: a chunk or compressed data that makes no sense.
	ErrBroken = errors.New("broken PNG")
)

// Decoder decodes one file after the other. It keeps its memory for the next file: four rows, some 400 KB for decompression and as much as
// a row has, some 50 KB once a file was in doubt, as much again once one has ended in doubt, a copy of the compressed data where that comes
// in several chunks, and for interlaced files the region. It is not safe for concurrent use.
type Decoder struct {
	reader reader
	parsed bool
	data   inflater
	fast   fastPath
	out    output
}

// NewDecoder returns a decoder that runs the kernels of the level.
func NewDecoder(level string) *Decoder {
	vector := kernel.Vector(level)
	return &Decoder{fast: fastPath{vector: vector, inflate: decompressor{vector: vector}}}
}

// Parse reads what stands in front of the pixels' data and returns the picture's size. It allocates nothing that depends on
// the size, so the caller can refuse a size before Decode. The decoder keeps src until the next Parse or Release; it must not change.
func (d *Decoder) Parse(src []byte) (w, h int, err error) {
	d.parsed, d.fast.verified, d.fast.known = false, false, false
	if err := d.reader.header(src); err != nil {
		return 0, 0, fmt.Errorf("png: %w", err)
	}
	d.parsed = true
	return d.reader.w, d.reader.h, nil
}

// Release lets go of the parsed file.
func (d *Decoder) Release() {
	d.parsed, d.reader = false, reader{}
	d.data.src.Reset(nil)
	d.data.all = nil
	d.fast.release()
}

// UseVerified tells that the bytes of the parsed file were verified before: Decode then looks at nothing behind its region.
func (d *Decoder) UseVerified() { d.fast.known = d.parsed }

// Verified reports whether the parsed file is known to be in order from its first byte to its last: whether Decode found it so, or UseVerified told.
func (d *Decoder) Verified() bool { return d.fast.known || d.fast.verified }

// Mask makes Decode give the numbers that the pixels of the parsed file are, three times each: indices of its palette, or grey values, as
// Pillow has them in modes P, L and 1. Other kinds are refused.
func (d *Decoder) Mask() error {
	r := &d.reader
	if !d.parsed || r.color != indexed && r.color != grey || r.depth == 16 {
		return errors.New("png: a mask has a palette or 8-bit grey")
	}
	r.indices = true
	return nil
}

// Decode gives the pixels of region r of the parsed file to sink, top to bottom. An error about the file is the same whatever
// the region; the sink may have got rows before it comes.
func (d *Decoder) Decode(r image.Rectangle, sink pixel.Sink) error {
	if err := strip.CheckRegion("png", d.parsed, r, d.reader.w, d.reader.h); err != nil {
		return err
	}
	defer func() {
		d.data.trim()
		d.out.canvas.Pix = strip.Keep(d.out.canvas.Pix)
	}()
	if err := d.decode(r, sink); err != nil {
		return fmt.Errorf("png: %w", err)
	}
	return nil
}

func (d *Decoder) decode(r image.Rectangle, sink pixel.Sink) error {
	d.data.open(&d.reader)
	d.out.begin(&d.reader, r, sink)
	if after, ok := d.fast.run(&d.data, &d.out); ok {
		return d.finishFast(after)
	}
	after, err := d.out.run(&d.data)
	if err != nil {
		return err
	}
	return d.reader.rest(after)
}

// finishFast looks at the chunks behind the data, where they were not looked at before.
func (d *Decoder) finishFast(after int) error {
	if d.fast.known {
		return nil
	}
	err := d.reader.rest(after)
	d.fast.verified = err == nil
	return err
}

// output turns filtered rows into RGB rows of the region.
type output struct {
	file   *reader
	region image.Rectangle
	rows   strip.Writer
	given  int         // rows of the region that the sink has, or rows waits to give it
	canvas pixel.Image // the region, where rows do not come in order
	lines  [2][]byte   // the row being made and the one above it
	line   []byte      // a pass's row as RGB
}

func (o *output) begin(f *reader, r image.Rectangle, sink pixel.Sink) {
	o.file, o.region, o.given = f, r, 0
	o.rows.Begin(r.Dx(), sink)
	for i := range o.lines {
		o.lines[i] = room(o.lines[i], 1+f.rowBytes(f.box.Dx())+filterPad)
	}
}

// run makes all rows, and returns where the chunks go on after the data.
func (o *output) run(data *inflater) (after int, err error) {
	f := o.file
	if f.inOrder() {
		if _, err := o.pass(data, whole, o.give); err != nil {
			return 0, err
		}
	} else if err := o.collect(data); err != nil {
		return 0, err
	}
	o.rows.Flush()
	return data.finish()
}

// A pass is a grid of pixels that are stored together.
type pass struct{ x, y, dx, dy int }

var (
	whole = pass{0, 0, 1, 1}
	adam7 = [7]pass{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}
)

// size is how many columns and rows of a frame the pass has, none where it is not positive.
func (p pass) size(frame image.Point) (columns, rows int) {
	return (frame.X - p.x + p.dx - 1) / p.dx, (frame.Y - p.y + p.dy - 1) / p.dy
}

// passes returns the passes of the file, in the order of the data.
func (r *reader) passes() []pass {
	if r.interlaced {
		return adam7[:]
	}
	return []pass{whole}
}

// pass decompresses the rows of a pass and hands row y of the frame, its filter undone, to use. Data that ends behind a row
// ends the picture: what is missing is zero, and ended is true.
func (o *output) pass(data *inflater, p pass, use func(p pass, y int, raw []byte)) (ended bool, err error) {
	size := o.file.box.Size()
	n, _ := p.size(size)
	if n <= 0 {
		return false, nil
	}
	bytes := o.file.rowBytes(n)
	cur, prev := o.lines[0][:1+bytes], o.lines[1][:1+bytes]
	clear(prev)
	for y := p.y; y < size.Y; y += p.dy {
		if !ended {
			ended, err = o.read(data, cur, prev, y)
		}
		if err != nil {
			return false, err
		}
		if ended {
			clear(cur)
		}
		use(p, y, cur[1:])
		cur, prev = prev, cur
	}
	return ended, nil
}

// read decompresses a row and undoes its filter.
func (o *output) read(data *inflater, cur, prev []byte, y int) (ended bool, err error) {
	ended, err = data.next(cur)
	if err == nil && !ended && !unfilter(cur[0], cur[1:], prev[1:], o.file.pixelBytes()) {
		err = fmt.Errorf("%w: filter %d in row %d", ErrBroken, cur[0], y)
	}
	return ended, err
}

// inOrder reports whether the rows of the data are those of the picture.
func (r *reader) inOrder() bool { return !r.interlaced && r.box == image.Rect(0, 0, r.w, r.h) }

// give hands row y on, unless it was given before.
func (o *output) give(_ pass, y int, raw []byte) {
	if y >= o.region.Min.Y+o.given && y < o.region.Max.Y {
		o.file.expand(o.rows.Row(), raw, o.region.Min.X)
		o.given++
	}
}

// collect makes pictures whose rows do not come in order, or do not fill the picture.
func (o *output) collect(data *inflater) error {
	if data.tooFew() {
		if err := o.every(data, func(pass, int, []byte) {}); err != nil {
			return err // before there is a canvas
		}
		data.open(o.file)
	}
	o.canvas.Reset(o.region.Dx(), o.region.Dy())
	o.fill()
	o.line = room(o.line, 3*o.file.box.Dx())
	if err := o.every(data, o.scatter); err != nil {
		return err
	}
	for y := range o.canvas.H {
		copy(o.rows.Row(), o.canvas.Pix[y*o.canvas.Stride:])
	}
	return nil
}

// every decompresses the rows of all passes and hands them to use.
func (o *output) every(data *inflater, use func(p pass, y int, raw []byte)) error {
	for _, p := range o.file.passes() {
		if ended, err := o.pass(data, p, use); err != nil || ended {
			return err
		}
	}
	return nil
}

// fill makes every pixel what a zero means.
func (o *output) fill() {
	var zero [8]byte
	var c [3]byte
	o.file.expand(c[:], zero[:], 0)
	pix := o.canvas.Pix[:o.canvas.H*o.canvas.Stride]
	for i := copy(pix, c[:]); i < len(pix); i *= 2 {
		copy(pix[i:], pix[:i])
	}
}

// scatter puts row y of a pass in its place.
func (o *output) scatter(p pass, y int, raw []byte) {
	box := o.file.box
	if y += box.Min.Y; y < o.region.Min.Y || y >= o.region.Max.Y {
		return
	}
	row := o.canvas.Pix[(y-o.region.Min.Y)*o.canvas.Stride:]
	n, _ := p.size(box.Size())
	line := o.line[:3*n]
	o.file.expand(line, raw, 0)
	for i := range n {
		if x := box.Min.X + p.x + i*p.dx; x >= o.region.Min.X && x < o.region.Max.X {
			copy(row[3*(x-o.region.Min.X):][:3], line[3*i:])
		}
	}
}

// room returns n bytes, b's own where it has them.
func room(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}
