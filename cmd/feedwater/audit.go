package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/feedwater-io/feedwater/server/audit"
)

// auditLog appends lines of JSON to a file, which is opened for each: they are rare, and the file may be moved away at any time.
type auditLog struct {
	path string // "-": stdout
	log  *slog.Logger

	mu     sync.Mutex
	stdout io.Writer
}

// newAudit returns what writes the lines; nil where nobody wants them. The file must be writable now.
func newAudit(path string, stdout io.Writer, log *slog.Logger) (func(audit.Line), error) {
	if path == "" {
		return nil, nil
	}
	a := &auditLog{path: path, log: log, stdout: stdout}
	return a.writeLine, a.appendBytes(nil)
}

func (a *auditLog) writeLine(line audit.Line) {
	b, err := json.Marshal(line)
	if err == nil {
		err = a.appendBytes(append(b, '\n'))
	}
	if err != nil {
		a.log.Error("the audit log misses a line", "err", err, "line", string(b))
	}
}

func (a *auditLog) appendBytes(b []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
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
