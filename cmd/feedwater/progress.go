package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// progress shows how far a command is: a bar on a terminal, a line every few seconds elsewhere.
type progress struct {
	w        io.Writer
	terminal bool
	began    time.Time // of the steps
	shown    time.Time
	open     bool   // the line is not ended
	of       string // what is counted
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, shown: time.Now(), of: "pictures"}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// showScanned shows a number whose end is not known.
func (p *progress) showScanned(files int) { p.showText(fmt.Sprintf("scanning: %d pictures", files)) }

// showStep shows n of all.
func (p *progress) showStep(n, all int) {
	if p.began.IsZero() {
		p.began = time.Now()
	}
	if !p.isDue() {
		return
	}
	const width = 30
	share := float64(n) / float64(max(all, 1))
	left := time.Duration(float64(time.Since(p.began)) * (1/max(share, 1e-9) - 1)).Round(time.Second)
	full := int(share * width)
	bar := strings.Repeat("#", full) + strings.Repeat(".", width-full)
	p.printText(fmt.Sprintf("[%s] %3.0f %%  %d of %d %s, %s left", bar, 100*share, n, all, p.of, left))
}

func (p *progress) showText(text string) {
	if p.isDue() {
		p.printText(text)
	}
}

// isDue reports whether it is time to show something.
func (p *progress) isDue() bool {
	every := 5 * time.Second
	if p.terminal {
		every = 100 * time.Millisecond
	}
	if time.Since(p.shown) < every {
		return false
	}
	p.shown = time.Now()
	return true
}

func (p *progress) printText(text string) {
	if p.terminal {
		fmt.Fprintf(p.w, "\r\x1b[K%s", text)
		p.open = true
		return
	}
	fmt.Fprintln(p.w, text)
}

// clearBar takes a bar away.
func (p *progress) clearBar() {
	if p.open {
		fmt.Fprintf(p.w, "\r\x1b[K")
		p.open = false
	}
}
