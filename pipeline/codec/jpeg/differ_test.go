package jpeg

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/codec/internal/pillowtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// TestMutants damages files of the corpus and photographs, and compares verdicts and pixels with Pillow's. It needs a Python with Pillow 13, which
// FEEDWATER_PYTHON names; elsewhere TestPillow stands for it. What differs is explained in docs/formats.md, or a mistake.
func TestMutants(t *testing.T) {
	interpreter := os.Getenv("FEEDWATER_PYTHON")
	if interpreter == "" {
		return
	}
	m := &mutantRun{pillow: pillowtest.Start(t, interpreter, "JPEG", "MPO"), bases: mutantBases(t), decoders: allLevels()}
	pillowtest.CompareMutants(t, 1500, "./pipeline/codec/jpeg -run 'TestMutants$'", "jpg", func(n uint64) pillowtest.Mutant { return m.compare(t, n) })
}

// mutantBases are the files that are damaged: small ones of all kinds, photographs, and large ones in several scans.
func mutantBases(t *testing.T) [2][][]byte {
	var small [][]byte
	for _, s := range newCorpus() {
		if _, _, err := NewDecoder(kernel.Scalar).Parse(s.data, Limits{}); err == nil && !strings.Contains(s.name, ".flip") {
			small = append(small, s.data)
		}
	}
	return [2][][]byte{small, pictures(t, 24)}
}

// mutantRun compares one damaged file after the other.
type mutantRun struct {
	pillow   *pillowtest.Process
	bases    [2][][]byte
	decoders []*Decoder
}

// file is the n-th damaged file.
func (m *mutantRun) file(r *rand.Rand) []byte {
	pick := func() []byte {
		of := m.bases[0]
		if r.IntN(16) == 0 {
			of = m.bases[1]
		}
		return of[r.IntN(len(of))]
	}
	return mutate(r, pick(), pick())
}

func (m *mutantRun) compare(t *testing.T, n uint64) pillowtest.Mutant {
	r := rand.New(rand.NewPCG(n, 9))
	b := m.file(r)
	m.pillow.Ask(t, b)
	d := m.decoders[r.IntN(len(m.decoders))]
	w, h, err := d.Parse(b, Limits{})
	said := m.pillow.Answer(t)
	var what string
	switch {
	case said.Large || err == nil && w*h > pillowtest.MostPixels:
		what = "large"
	case err != nil && said.Refused != "":
		what = "refused by both"
	case err != nil:
		what = explained(err, d)
	case said.Refused != "":
		what = "wrong: Pillow says " + said.Refused
	default:
		what = m.pixels(d, r, said)
	}
	return pillowtest.Mutant{File: b, What: what, Err: err}
}

// pixels compares those of the file that d has parsed, and of a region of it. libjpeg-turbo's fast decoder takes fill bytes before a stuffed zero for a
// marker, and the MCU in which they are keeps coefficients of that mistake; docs/formats.md.
func (m *mutantRun) pixels(d *Decoder, r *rand.Rand, want pillowtest.Answer) string {
	w, h := d.parser.frame.w, d.parser.frame.h
	if w != want.W || h != want.H {
		return fmt.Sprintf("wrong: %dx%d, Pillow says %dx%d", w, h, want.W, want.H)
	}
	for _, part := range []image.Rectangle{image.Rect(0, 0, w, h), randomRegion(r, w, h)} {
		got, err := decodeRegion(d, part)
		want := crop(want.Pix, w, part)
		if err == nil && !bytes.Equal(got, want) && bytes.Contains(d.parser.src, []byte{0xff, 0xff, 0}) {
			return "fill bytes in the data"
		}
		if err != nil || !bytes.Equal(got, want) {
			return fmt.Sprintf("wrong: %s: region %v of %dx%d differs from byte %d on (%v)", d.output.kernels.Level, part, w, h, firstDifference(got, want), err)
		}
	}
	return m.copyPixels(d, r, want)
}

// copyPixels compares a region that is decoded by the file's copy, if it has one.
func (m *mutantRun) copyPixels(d *Decoder, r *rand.Rand, want pillowtest.Answer) string {
	file := d.parser.src
	d.RecordCopies(true)
	d.Record(8)
	index := d.AppendIndex(nil)
	if d.RecordCopies(false); !IsCopy(index) {
		return "equal"
	}
	part := randomRegion(r, want.W, want.H)
	_, _, err := d.ParseIndexed(file, Limits{}, index)
	if err != nil || len(d.index.marks) == 0 {
		return fmt.Sprintf("wrong: the copy is not taken (%v)", err)
	}
	if got, err := decodeRegion(d, part); err != nil || !bytes.Equal(got, crop(want.Pix, want.W, part)) {
		return fmt.Sprintf("wrong: region %v differs in the copy (%v)", part, err)
	}
	return "equal, as a copy too"
}

// explained names the reason for which a file is refused that Pillow takes. docs/formats.md says more of each.
func explained(err error, d *Decoder) string {
	p := &d.parser
	switch {
	case len(p.scans) == 1 && p.frame.single(&p.scans[0]) && len(p.src) > pieceBytes && !errors.Is(err, ErrTruncated):
		return "behind the picture"
	case errors.Is(err, ErrTruncated):
		return "no marker at the end"
	case errors.Is(err, ErrLimit):
		return "too many scans"
	case errors.Is(err, ErrUnsupported) && strings.Contains(err.Error(), "arithmetic"):
		return "arithmetic coding"
	case errors.Is(err, ErrUnsupported) && strings.Contains(err.Error(), "lossless"):
		return "lossless"
	}
	return "wrong: refused, and Pillow takes it"
}
