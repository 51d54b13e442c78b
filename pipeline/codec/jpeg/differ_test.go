package jpeg

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"image"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/codec/internal/pillowtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

var (
	mutants   = flag.Uint64("mutants", 1500, "how many damaged files TestMutants compares, from 1 on")
	mutantFor = flag.Duration("mutants-for", 0, "how long TestMutants goes on, with other files each time; 0: see -mutants")
	mutant    = flag.Uint64("mutant", 0, "the only file that TestMutants compares, and writes to the folder of -artifacts; 0: see -mutants")
)

// TestMutants damages files of the corpus and photographs, and compares verdicts and pixels with Pillow's. It needs a Python with Pillow 13, which
// FEEDWATER_PYTHON names; elsewhere TestPillow stands for it. What differs is explained in docs/formats.md, or a mistake.
func TestMutants(t *testing.T) {
	interpreter := os.Getenv("FEEDWATER_PYTHON")
	if interpreter == "" {
		return
	}
	m := &mutantRun{pillow: pillowtest.Start(t, interpreter, "JPEG", "MPO"), bases: mutantBases(t), decoders: allLevels(), seen: map[string]int{}}
	begun := time.Now()
	switch {
	case *mutant != 0:
		m.compare(t, *mutant)
	case *mutantFor != 0:
		first := uint64(begun.UnixMicro())
		for n := first; time.Since(begun) < *mutantFor; n++ {
			m.compare(t, n)
		}
	default:
		for n := range *mutants {
			m.compare(t, n+1)
		}
	}
	t.Logf("damaged files by what was said of them: %v", m.seen)
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
	seen     map[string]int
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

func (m *mutantRun) compare(t *testing.T, n uint64) {
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
	kind, _, wrong := strings.Cut(what, ":")
	if m.seen[kind]++; wrong {
		t.Errorf("file %d: %s (%v)\nto see it again: go test ./pipeline/codec/jpeg -run 'TestMutants$' -mutant %d -artifacts", n, what, err, n)
	}
	if *mutant != 0 {
		keep(t, filepath.Join(t.ArtifactDir(), fmt.Sprintf("mutant-%d.jpg", n)), b)
	}
}

func keep(t *testing.T, path string, b []byte) {
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Log(path)
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
