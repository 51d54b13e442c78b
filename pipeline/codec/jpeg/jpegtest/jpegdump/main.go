// Command jpegdump decodes JPEG files for comparison with another decoder.
//
// It reads one file name from each line of its standard input, with the left, top, right and bottom edge of a region behind a
// tab if not the whole picture is wanted:
//
//	photo.jpg
//	photo.jpg	10 20 234 244
//
// For each line it writes one line to standard output, "ok WIDTH HEIGHT" followed by WIDTH x HEIGHT x 3 bytes of RGB, or
// "error MESSAGE". It answers a line before it reads the next one.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"image"
	"io"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

func main() {
	log.SetFlags(0)
	level := flag.String("level", "", fmt.Sprintf("kernels to use, of %v (default: the best)", kernel.Levels()))
	flag.Parse()
	if err := run(*level, os.Stdin, os.Stdout); err != nil {
		log.Fatal("jpegdump: ", err)
	}
}

func run(level string, in io.Reader, out io.Writer) error {
	if level == "" {
		var err error
		if level, err = kernel.Best(); err != nil {
			return err
		}
	}
	if !slices.Contains(kernel.Levels(), level) {
		return fmt.Errorf("level %q: this processor can run %v", level, kernel.Levels())
	}
	d := jpeg.NewDecoder(level)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		pix, size, err := decode(d, lines.Text())
		answer := fmt.Sprintf("ok %d %d\n", size.X, size.Y)
		if err != nil {
			answer = fmt.Sprintf("error %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
		}
		if _, err := io.WriteString(out, answer+string(pix)); err != nil {
			return err
		}
	}
	return lines.Err()
}

// decode answers one line.
func decode(d *jpeg.Decoder, line string) ([]byte, image.Point, error) {
	name, edges, part := strings.Cut(line, "\t")
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, image.Point{}, err
	}
	w, h, err := d.Parse(b, jpeg.Limits{})
	if err != nil {
		return nil, image.Point{}, err
	}
	r := image.Rect(0, 0, w, h)
	if part {
		if _, err := fmt.Sscan(edges, &r.Min.X, &r.Min.Y, &r.Max.X, &r.Max.Y); err != nil {
			return nil, image.Point{}, fmt.Errorf("region %q: %w", edges, err)
		}
	}
	c := collector{width: 3 * r.Dx()}
	err = d.Decode(r, &c)
	return c.pix, r.Size(), err
}

// collector keeps all rows.
type collector struct {
	pix   []byte
	width int
}

func (c *collector) Rows(pix []byte, stride, n int) {
	for i := range n {
		c.pix = append(c.pix, pix[i*stride:][:c.width]...)
	}
}
