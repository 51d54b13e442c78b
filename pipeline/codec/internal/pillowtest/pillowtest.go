// Package pillowtest asks Pillow what it makes of files, damaged ones too, for tests that compare. It needs a Python
// with Pillow 13.
package pillowtest

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// MostPixels is the largest picture that Pillow is asked for.
const MostPixels = 1 << 21

// A Process decodes with Pillow.
type Process struct {
	in  io.WriteCloser
	out *bufio.Reader
}

// An Answer is what Pillow made of a file.
type Answer struct {
	Large   bool   // over MostPixels
	Refused string // why; empty: W, H and Pix, RGB rows, are there
	W, H    int
	Pix     []byte
}

//go:embed answer.py
var program string

// Start starts a process of an interpreter that takes files of these formats, by Pillow's names. It ends with the test.
func Start(t *testing.T, interpreter string, formats ...string) *Process {
	t.Helper()
	command := exec.Command(interpreter, append([]string{"-c", program, fmt.Sprint(MostPixels)}, formats...)...)
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
	return &Process{in, bufio.NewReaderSize(out, 1<<20)}
}

// Ask hands over a file. Its answer must be taken before the next.
func (p *Process) Ask(t *testing.T, b []byte) {
	t.Helper()
	if _, err := p.in.Write(append(fmt.Appendf(nil, "%d\n", len(b)), b...)); err != nil {
		t.Fatal(err)
	}
}

// Answer takes the answer about the file that was handed over last.
func (p *Process) Answer(t *testing.T) (a Answer) {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	verdict, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	switch verdict {
	case "large":
		a.Large = true
	case "refused":
		a.Refused = rest
	default:
		if _, err := fmt.Sscan(rest, &a.W, &a.H); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		a.Pix = make([]byte, 3*a.W*a.H)
		if _, err := io.ReadFull(p.out, a.Pix); err != nil {
			t.Fatal(err)
		}
	}
	return a
}
