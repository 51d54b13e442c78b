// Command parity lets the tests in python/tests/parity compare package transform with Pillow and torchvision. It reads
// requests from standard input until its end, each one line of JSON and then the pixels of a picture (8-bit RGB) where
// the mode takes one, and writes the answers to standard output in the same form. Every picture is made at every kernel
// level; it ends with an error when they differ. It starts no goroutine.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"os"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
	"github.com/feedwater-io/feedwater/pipeline/resize"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "parity:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	modes := map[string]func(*conversation) error{"resample": resample, "transform": transformPictures, "draw": draw, "tell": tell}
	if len(args) != 1 || modes[args[0]] == nil {
		return errors.New("usage: parity resample | transform | draw | tell")
	}
	c := &conversation{bufio.NewReaderSize(in, 1<<20), bufio.NewWriterSize(out, 1<<20)}
	for {
		err := modes[args[0]](c)
		if errors.Is(err, io.EOF) {
			return c.out.Flush()
		}
		if err != nil {
			return err
		}
	}
}

type conversation struct {
	in  *bufio.Reader
	out *bufio.Writer
}

// request reads one line into v. io.EOF means that there is none.
func (c *conversation) request(v any) error {
	line, err := c.in.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}

func (c *conversation) picture(w, h int) (*picture, error) {
	p := &picture{}
	p.Reset(w, h)
	_, err := io.ReadFull(c.in, p.Pix[:3*w*h])
	return p, err
}

// resample answers with the pixels of an transform.Window.
func resample(c *conversation) error {
	var q struct {
		From, To     image.Point
		Rect         image.Rectangle
		Mirror, Flip resize.Flips
		Reference    resize.Reference
		Rows         int // how many the source hands over at a time
	}
	if err := c.request(&q); err != nil {
		return err
	}
	p, err := c.picture(q.From.X, q.From.Y)
	if err != nil {
		return err
	}
	p.rows = q.Rows
	pix, err := atEveryLevel(func(level string) ([]byte, error) {
		rs, size := resize.NewResampler(level, q.Reference), q.Rect.Size()
		dst := make([]byte, 3*size.X*size.Y)
		rs.Begin(resize.Window{From: q.From, To: q.To, Rect: q.Rect, Mirror: q.Mirror, Flip: q.Flip}, dst, 3*size.X)
		return dst, p.Decode(rs.Need(), rs)
	})
	if err == nil {
		_, err = c.out.Write(pix)
	}
	return err
}

// sample is what the modes transform and draw are asked for.
type sample struct {
	Transforms []json.RawMessage
	Seed       uint64
	Sample     order.Sample
	W, H       int
	Count      uint32 // of draw: samples with indices from Sample.Index on
}

func (s sample) runner(level string) (*transform.Runner, error) {
	chain, err := transform.Parse(s.Transforms)
	if err != nil {
		return nil, err
	}
	return transform.NewRunner(chain, transform.Options{Seed: s.Seed, Level: level})
}

// transformPictures answers with the result's size and what was drawn, then with the pixels.
func transformPictures(c *conversation) error {
	var s sample
	if err := c.request(&s); err != nil {
		return err
	}
	p, err := c.picture(s.W, s.H)
	if err != nil {
		return err
	}
	var answer struct {
		W     int              `json:"w"`
		H     int              `json:"h"`
		Draws []transform.Draw `json:"draws"`
	}
	pix, err := atEveryLevel(func(level string) ([]byte, error) {
		r, err := s.runner(level)
		if err != nil {
			return nil, err
		}
		if answer.Draws, err = r.Draws(s.W, s.H, s.Sample); err != nil {
			return nil, err
		}
		if answer.W, answer.H, err = r.Begin(s.W, s.H, s.Sample); err != nil {
			return nil, err
		}
		dst := make([]byte, 3*answer.W*answer.H)
		return dst, r.Run(p, dst, 3*answer.W)
	})
	if err != nil {
		return err
	}
	if err := json.NewEncoder(c.out).Encode(answer); err != nil {
		return err
	}
	_, err = c.out.Write(pix)
	return err
}

// draw answers with five little-endian int32 per op and sample: applied, top, left, height, width.
func draw(c *conversation) error {
	return eachSample(c, func(draws []transform.Draw) error {
		for _, d := range draws {
			var p struct{ Top, Left, Height, Width int32 }
			if err := json.Unmarshal(d.Parameters, &p); err != nil {
				return err
			}
			applied := int32(0)
			if d.Applied {
				applied = 1
			}
			if err := binary.Write(c.out, binary.LittleEndian, [5]int32{applied, p.Top, p.Left, p.Height, p.Width}); err != nil {
				return err
			}
		}
		return nil
	})
}

// tell answers with what was drawn for each sample, one JSON array of transform.Draw per line.
func tell(c *conversation) error {
	out := json.NewEncoder(c.out)
	return eachSample(c, func(draws []transform.Draw) error { return out.Encode(draws) })
}

// eachSample draws for each sample that is asked for.
func eachSample(c *conversation, answer func([]transform.Draw) error) error {
	var s sample
	if err := c.request(&s); err != nil {
		return err
	}
	r, err := s.runner("")
	if err != nil {
		return err
	}
	for range s.Count {
		draws, err := r.Draws(s.W, s.H, s.Sample)
		if err != nil {
			return err
		}
		if err := answer(draws); err != nil {
			return err
		}
		s.Sample.Index++
	}
	return nil
}

// atEveryLevel returns what run returns, which must be the same at all kernel levels.
func atEveryLevel(run func(level string) ([]byte, error)) ([]byte, error) {
	var first []byte
	for _, level := range kernel.Levels() {
		pix, err := run(level)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = pix
		}
		if !bytes.Equal(first, pix) {
			return nil, fmt.Errorf("level %s differs", level)
		}
	}
	return first, nil
}

// picture is a decoded image as a Source that hands over rows at a time; 0: all.
type picture struct {
	pixel.Image
	rows int
}

func (p *picture) Decode(r image.Rectangle, sink pixel.Sink) error {
	step := p.rows
	if step == 0 {
		step = r.Dy()
	}
	for y := r.Min.Y; y < r.Max.Y; y += step {
		sink.Rows(p.Pix[y*p.Stride+3*r.Min.X:], p.Stride, min(step, r.Max.Y-y))
	}
	return nil
}
