package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A program that reads samples in a way of its own listens on a socket of this machine. It is asked by 9 bytes: what is
// asked for, and the number of a sample as u64. It answers with a status, a label as i64, how many bytes there are as
// u64, and the bytes. All numbers are little-endian.
const (
	askCount = iota // samples, in place of the label, and in place of the length how many connections are answered at once
	askSize         // of a sample, without its bytes
	askBytes        // of a sample
)

// Statuses of answers.
const (
	programAnswers = iota
	programRaised  // the bytes say what
)

const (
	questionBytes = 9
	answerBytes   = 17
	maxRaised     = 1 << 16
	maxPrograms   = 1024 // connections
)

// Unlabelled is the label of a sample that has none.
const Unlabelled = math.MinInt64

// programScheme begins the place of what a program of this machine reads. Behind it stands a name, which stands for the
// data; the option socket says where the program listens.
const programScheme = "python://"

// IsProgram reports whether a place is what a program of this machine reads.
func IsProgram(place string) bool { return strings.HasPrefix(place, programScheme) }

// WithoutSocket is the place of what a program reads, wherever it listens.
func WithoutSocket(place string) string {
	name, _ := CutURL(place)
	return name
}

// program is the Store of the samples that a program reads: objects that are called by their numbers. A label is an
// object's version.
type program struct {
	socket string
	name   string
	alive  func()
	pulse  time.Duration // how often alive is called while its processes start

	mu        sync.Mutex
	ready     bool
	count     int64
	idle      []net.Conn
	answering chan struct{} // one for each connection that is answered at once
}

func newProgram(l *location, alive func()) *program {
	return &program{socket: l.options.Get("socket"), name: l.host, alive: alive, pulse: time.Second}
}

// Identity names the data, for whoever keeps what was read.
func (p *program) Identity() string { return programScheme + p.name }

// RaisedError says what a program's own code raised.
type RaisedError struct{ text string }

// Error is what was raised.
func (e *RaisedError) Error() string { return e.text }

// beatWhileStarting tells that all is well until stop is called: processes that start import what they need, which may
// take longer than any read should.
func (p *program) beatWhileStarting() (stop func()) {
	started := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		ticker := time.NewTicker(p.pulse)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				p.alive()
			case <-started:
				return
			}
		}
	})
	return func() {
		close(started)
		beating.Wait()
	}
}

// open asks how many samples there are, once. The answer comes when a process has started.
func (p *program) open(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ready {
		return nil
	}
	defer p.beatWhileStarting()()
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", p.socket)
	if err != nil {
		return p.lost(ctx, err)
	}
	count, connections, err := ask(ctx, c, askCount, 0)
	if err != nil {
		_ = c.Close()
		return p.lost(ctx, err)
	}
	p.count, p.ready = count, true
	p.answering = make(chan struct{}, min(max(connections, 1), maxPrograms))
	p.idle = append(p.idle, c)
	p.alive()
	return nil
}

// lost is the error of a program that does not answer. Its processes do not come back.
func (p *program) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.As(err, new(*RaisedError)) || errors.As(err, new(*ChangedError)) {
		return errors.Join(ctx.Err(), err)
	}
	return &RaisedError{fmt.Sprintf("processes that read the data have ended: %v. What they printed says why. Is the script guarded by `if __name__ == \"__main__\":`? "+
		"They run it, where the data set's class is its own", err)}
}

// ask asks a question, and leaves the answer's bytes on the way.
func ask(ctx context.Context, c net.Conn, what byte, number uint64) (label, size int64, err error) {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	var question [questionBytes]byte
	question[0] = what
	binary.LittleEndian.PutUint64(question[1:], number)
	if _, err := c.Write(question[:]); err != nil {
		return 0, 0, errors.Join(ctx.Err(), err)
	}
	var answer [answerBytes]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return 0, 0, errors.Join(ctx.Err(), err)
	}
	label, size = int64(binary.LittleEndian.Uint64(answer[1:])), int64(binary.LittleEndian.Uint64(answer[9:]))
	if answer[0] == programAnswers {
		return label, size, nil
	}
	text := make([]byte, min(max(size, 0), maxRaised))
	if _, err := io.ReadFull(c, text); err != nil {
		return 0, 0, errors.Join(ctx.Err(), err)
	}
	return 0, 0, &RaisedError{string(text)}
}

// talk lends a connection to f. One on which something failed is closed; where a process ended meanwhile, f is called
// once more on another one.
func (p *program) talk(ctx context.Context, f func(net.Conn) error) error {
	if err := p.open(ctx); err != nil {
		return err
	}
	select {
	case p.answering <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.answering }()
	for tries := 1; ; tries++ {
		c, err := p.connect(ctx)
		if err != nil {
			return p.lost(ctx, err)
		}
		err = f(c)
		if err == nil || errors.As(err, new(*RaisedError)) {
			p.alive()
			p.mu.Lock()
			p.idle = append(p.idle, c)
			p.mu.Unlock()
			return err
		}
		_ = c.Close()
		if ctx.Err() != nil || errors.As(err, new(*ChangedError)) || tries == 2 {
			return p.lost(ctx, err)
		}
	}
}

func (p *program) connect(ctx context.Context) (net.Conn, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, "unix", p.socket)
}

// Stat implements Store. The place itself has as many bytes as there are samples.
func (p *program) Stat(ctx context.Context, name string) (Attributes, error) {
	if name == "" {
		if err := p.open(ctx); err != nil {
			return Attributes{}, err
		}
		return Attributes{Kind: KindFolder, Size: p.count, Inode: digest(fmt.Sprint(p.name, "/", p.count))}, nil
	}
	number, err := strconv.ParseUint(name, 10, 63)
	if err != nil {
		return Attributes{}, fs.ErrNotExist
	}
	var a Attributes
	err = p.talk(ctx, func(c net.Conn) error {
		label, size, err := ask(ctx, c, askSize, number)
		a = objectAttributes(size, strconv.FormatInt(label, 10))
		return err
	})
	return a, err
}

// OpenDirectory implements Store.
func (p *program) OpenDirectory(context.Context, string, []byte) (Directory, error) {
	return nil, fs.ErrNotExist
}

// ReadAt implements Store. Only a whole sample can be read. What a program raises is a *ChangedError: when it was
// listed it was read.
func (p *program) ReadAt(ctx context.Context, o *Object, b []byte, off int64) error {
	number, err := strconv.ParseUint(string(o.Name), 10, 63)
	if err != nil || off != 0 || int64(len(b)) != o.Size {
		return fmt.Errorf("%d bytes of %.99q from %d on: a program reads whole samples", len(b), o.Name, off)
	}
	err = p.talk(ctx, func(c net.Conn) error {
		label, size, err := ask(ctx, c, askBytes, number)
		switch {
		case err != nil:
			return err
		case size != o.Size:
			return o.changed(fmt.Sprintf("has %d bytes, had %d", size, o.Size))
		case strconv.FormatInt(label, 10) != string(o.Version):
			return o.changed(fmt.Sprintf("has the label %d, had %s", label, o.Version))
		}
		defer context.AfterFunc(ctx, func() { _ = c.Close() })()
		_, err = io.ReadFull(c, b)
		return err
	})
	if e, ok := errors.AsType[*ChangedError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*RaisedError](err); ok {
		return o.changed("cannot be read any more: " + e.text)
	}
	return err
}

// Reads implements Store.
func (p *program) Reads() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(1, cap(p.answering))
}

// Close implements Store.
func (p *program) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		_ = c.Close()
	}
	p.idle = nil
	return nil
}
