package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/feedwater-io/feedwater/server/audit"
)

// auditLog appends lines of JSON to a file, which is opened for each: they are rare, and the file may be moved away at any time. One goroutine
// writes, until close: a file whose storage does not answer keeps no call waiting. Where it does not keep up lines are missed, and counted.
type auditLog struct {
	path   string // "-": stdout
	log    *slog.Logger
	stdout io.Writer

	mu     sync.Mutex
	lines  chan []byte // closed by close
	closed bool
	missed int // lines, since the last one that was taken
	done   chan struct{}
}

// auditBacklog is how many lines wait for the file at most.
const auditBacklog = 4096

// openAudit returns what writes the lines; nil where nobody wants them. The file must be writable now.
func openAudit(path string, stdout io.Writer, log *slog.Logger) (*auditLog, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // none
	}
	a := &auditLog{path: path, log: log, stdout: stdout, lines: make(chan []byte, auditBacklog), done: make(chan struct{})}
	if err := a.appendBytes(nil); err != nil {
		return nil, err
	}
	go a.appendLines()
	return a, nil
}

// writeLine has a line written, soon.
func (a *auditLog) writeLine(line audit.Line) {
	b, err := json.Marshal(line)
	if err != nil {
		a.log.Error("the audit log misses a line", "err", err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	select {
	case a.lines <- append(b, '\n'):
		a.tellMissed()
	default:
		if a.missed++; a.missed == 1 {
			a.log.Error("the file of the audit log does not keep up, and misses lines from now on", "file", a.path)
		}
	}
}

// tellMissed logs how many lines are missed. mu is held.
func (a *auditLog) tellMissed() {
	if a.missed > 0 {
		a.log.Error("the audit log misses lines", "file", a.path, "lines", a.missed)
		a.missed = 0
	}
}

// appendLines writes what comes.
func (a *auditLog) appendLines() {
	defer close(a.done)
	for b := range a.lines {
		if err := a.appendBytes(b); err != nil {
			a.log.Error("the audit log misses a line", "err", err, "line", string(b))
		}
	}
}

// close waits until all lines are written. Later ones are not. Closing twice does nothing.
func (a *auditLog) close() {
	a.mu.Lock()
	if !a.closed {
		a.tellMissed()
		close(a.lines)
	}
	a.closed = true
	a.mu.Unlock()
	<-a.done
}

func (a *auditLog) appendBytes(b []byte) error {
	if a.path == "-" {
		_, err := a.stdout.Write(b)
		return err
	}
	f, err := os.OpenFile(a.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
