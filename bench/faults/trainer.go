//go:build linux

package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

//go:embed trainer.py
var trainerScript string

// settings are what trainer.py is told.
type settings struct {
	Source string          `json:"source"`
	Nodes  string          `json:"nodes"`
	Token  string          `json:"token"` // file; empty: none
	Batch  int             `json:"batch"`
	Rank   int             `json:"rank"`
	Ranks  int             `json:"ranks"`
	Period float64         `json:"period"` // seconds from a batch to the next request
	State  json.RawMessage `json:"state"`
}

// line is what trainer.py says of a batch, and at its end.
type line struct {
	Wait     float64         `json:"wait"`
	Epoch    uint32          `json:"epoch"`
	Position uint64          `json:"position"`
	Samples  []sample        `json:"samples"`
	State    json.RawMessage `json:"state"`
	Agent    int             `json:"agent"`
	Ahead    *int            `json:"ahead"`
	Ready    int             `json:"ready"` // samples that are there and were not taken
	Asked    int             `json:"asked"` // samples that are not there yet

	at time.Time
}

// sample is its index and the digest of its pixels and label.
type sample struct {
	index  uint64
	digest string
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *sample) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&s.index, &s.digest})
}

// trainer is a training process, one rank. What it said may be looked at any time.
type trainer struct {
	settings settings
	process  *exec.Cmd
	stdin    io.Closer
	ended    chan struct{}

	mu    sync.Mutex
	lines []line
	ahead int
	err   error
}

// train starts one rank.
func (m *matrix) train(s settings) (*trainer, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	t := &trainer{settings: s, process: exec.Command(m.python, "-c", trainerScript, string(text)), ended: make(chan struct{})}
	t.process.Env = append(os.Environ(), "FEEDWATER_BINARY="+m.program)
	t.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if t.stdin, err = t.process.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := t.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr := &tail{log: func(s string) { m.say(fmt.Sprintf("rank %d: %s", t.settings.Rank, s)) }}
	t.process.Stderr = stderr
	if err := t.process.Start(); err != nil {
		return nil, err
	}
	go func() { // whoever started it waits for ended
		defer close(t.ended)
		t.read(stdout)
		if err := t.process.Wait(); err != nil {
			t.fail(fmt.Errorf("rank %d: %w: %s", t.settings.Rank, err, stderr.text))
		}
	}()
	return t, nil
}

// tail passes a process's messages on and keeps the end of them.
type tail struct {
	text []byte
	log  func(string)
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.log(string(b))
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-2000):]
	return len(b), nil
}

func (t *trainer) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
}

func (t *trainer) read(stdout io.Reader) {
	for d := json.NewDecoder(bufio.NewReader(stdout)); ; {
		var l line
		if err := d.Decode(&l); err != nil {
			if err != io.EOF {
				t.fail(err)
			}
			return
		}
		l.at = time.Now()
		t.mu.Lock()
		if l.Ahead != nil {
			t.ahead = *l.Ahead
		} else {
			t.lines = append(t.lines, l)
		}
		t.mu.Unlock()
	}
}

// said is what it has told so far, and why it ended, if it did by itself.
func (t *trainer) said() ([]line, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lines, t.err
}

// last is what it told last; nothing before it told anything.
func (t *trainer) last() line {
	lines, _ := t.said()
	if len(lines) == 0 {
		return line{}
	}
	return lines[len(lines)-1]
}

// finish lets it end in order.
func (t *trainer) finish() error {
	_ = t.stdin.Close()
	select {
	case <-t.ended:
	case <-time.After(time.Minute):
		t.kill()
		return fmt.Errorf("rank %d does not end", t.settings.Rank)
	}
	_, err := t.said()
	return err
}

// kill ends it without a word; its agent notices.
func (t *trainer) kill() {
	_ = t.process.Process.Kill() // it may be gone
	<-t.ended
}
