package jpeg

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"image"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	m := &mutantRun{pillow: startPillow(t, interpreter), bases: mutantBases(t), decoders: allLevels(), seen: map[string]int{}}
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
	pillow   *pillow
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
	m.pillow.ask(t, b)
	d := m.decoders[r.IntN(len(m.decoders))]
	w, h, err := d.Parse(b, Limits{})
	said := m.pillow.answer(t)
	var what string
	switch {
	case said.large || err == nil && w*h > answeredPixels:
		what = "large"
	case err != nil && said.refused != "":
		what = "refused by both"
	case err != nil:
		what = explained(err, d)
	case said.refused != "":
		what = "wrong: Pillow says " + said.refused
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
func (m *mutantRun) pixels(d *Decoder, r *rand.Rand, want said) string {
	w, h := d.parser.frame.w, d.parser.frame.h
	if w != want.w || h != want.h {
		return fmt.Sprintf("wrong: %dx%d, Pillow says %dx%d", w, h, want.w, want.h)
	}
	for _, part := range []image.Rectangle{image.Rect(0, 0, w, h), randomRegion(r, w, h)} {
		got, err := decodeRegion(d, part)
		want := crop(want.pix, w, part)
		if err == nil && !bytes.Equal(got, want) && bytes.Contains(d.parser.src, []byte{0xff, 0xff, 0}) {
			return "fill bytes in the data"
		}
		if err != nil || !bytes.Equal(got, want) {
			return fmt.Sprintf("wrong: %s: region %v of %dx%d differs from byte %d on (%v)", d.output.kernels.Level, part, w, h, firstDifference(got, want), err)
		}
	}
	return "equal"
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

// answeredPixels is the largest picture that Pillow is asked for.
const answeredPixels = 1 << 21

// pillow is a process that decodes with Pillow.
type pillow struct {
	in  io.WriteCloser
	out *bufio.Reader
}

// said is what Pillow made of a file.
type said struct {
	large   bool
	refused string // why; empty: w, h and pix are there
	w, h    int
	pix     []byte
}

// startPillow starts the process, which ends with the test.
func startPillow(t *testing.T, interpreter string) *pillow {
	command := exec.Command(interpreter, "testdata/pillow.py", "answer", fmt.Sprint(answeredPixels))
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := command.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &pillow{in, bufio.NewReaderSize(out, 1<<20)}
}

// ask hands over a file. An answer must be taken before the next.
func (p *pillow) ask(t *testing.T, b []byte) {
	if _, err := p.in.Write(append(fmt.Appendf(nil, "%d\n", len(b)), b...)); err != nil {
		t.Fatal(err)
	}
}

func (p *pillow) answer(t *testing.T) (s said) {
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	verdict, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	switch verdict {
	case "large":
		s.large = true
	case "refused":
		s.refused = rest
	default:
		if _, err := fmt.Sscan(rest, &s.w, &s.h); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		s.pix = make([]byte, 3*s.w*s.h)
		if _, err := io.ReadFull(p.out, s.pix); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
