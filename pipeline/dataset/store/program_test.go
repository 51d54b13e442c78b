package store

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fakeProgram answers on a socket as a program with ten samples does: sample 3 is raised, and the next cut answers are connections that end.
type fakeProgram struct {
	cut, label, connections atomic.Int64
	started                 chan struct{} // nothing is answered before; nil: it has
}

func (f *fakeProgram) serve(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.connections.Add(1)
			go f.answer(c)
		}
	}()
	return path
}

func (f *fakeProgram) answer(c net.Conn) {
	defer c.Close()
	if f.started != nil {
		<-f.started
	}
	for {
		var question [questionBytes]byte
		if _, err := io.ReadFull(c, question[:]); err != nil {
			return
		}
		if question[0] != askCount && f.cut.Add(-1) >= 0 {
			return
		}
		status, label, text := byte(programAnswers), f.label.Load(), "picture"
		switch number := binary.LittleEndian.Uint64(question[1:]); {
		case question[0] == askCount:
			label, text = 10, "ab" // two connections
		case number == 3:
			status, text = programRaised, "read(3) raised"
		}
		answer := []byte{status}
		answer = binary.LittleEndian.AppendUint64(answer, uint64(label))
		answer = binary.LittleEndian.AppendUint64(answer, uint64(len(text)))
		if status == programRaised || question[0] == askBytes {
			answer = append(answer, text...)
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

func openProgram(t *testing.T, socket string) Store {
	t.Helper()
	s, err := OpenURL("python://name?socket="+socket, RemoteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestProgramThatStarts: a program whose processes take long to start is alive meanwhile, and no storage that hangs.
func TestProgramThatStarts(t *testing.T) {
	f := &fakeProgram{started: make(chan struct{})}
	var beats atomic.Int64
	s, err := OpenURL("python://name?socket="+f.serve(t), RemoteOptions{Alive: func() {
		if beats.Add(1) == 3 {
			close(f.started)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, _ := s.(*program)
	p.pulse = time.Millisecond
	if a, err := s.Stat(t.Context(), ""); err != nil || a.Size != 10 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestProgram(t *testing.T) {
	f := &fakeProgram{}
	f.label.Store(5)
	s := openProgram(t, f.serve(t))
	place, err := s.Stat(t.Context(), "")
	if err != nil || place.Kind != KindFolder || place.Size != 10 || s.Reads() != 2 {
		t.Fatalf("%+v, %d at once, %v", place, s.Reads(), err)
	}
	a, err := s.Stat(t.Context(), "1")
	if err != nil || a.Size != 7 || a.Version != "5" {
		t.Fatalf("%+v, %v", a, err)
	}
	o := &Object{Name: []byte("1"), Size: 7, Version: []byte("5")}
	b := make([]byte, 7)
	for cut := range int64(2) { // a connection that ends is replaced
		f.cut.Store(cut)
		if err := s.ReadAt(t.Context(), o, b, 0); err != nil || string(b) != "picture" {
			t.Errorf("%q, %v", b, err)
		}
	}
	if n := f.connections.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
	if _, err := s.Stat(t.Context(), "name"); !LeadsNowhere(err) {
		t.Error(err)
	}
	if err := s.ReadAt(t.Context(), o, b[:3], 0); err == nil {
		t.Error("a part of a sample is read")
	}
}

// TestProgramsTrouble: what a program raises, other bytes than were listed, and processes that have ended are told, and not tried for ever.
func TestProgramsTrouble(t *testing.T) {
	f := &fakeProgram{}
	s := openProgram(t, f.serve(t))
	if _, err := s.Stat(t.Context(), "3"); !errors.As(err, new(*RaisedError)) || err.Error() != "read(3) raised" {
		t.Error(err)
	}
	for says, o := range map[string]*Object{
		"3 cannot be read any more: read(3) raised": {Name: []byte("3"), Size: 7, Version: []byte("0")},
		"1 has 7 bytes, had 8":                      {Name: []byte("1"), Size: 8, Version: []byte("0")},
		"1 has the label 0, had 1":                  {Name: []byte("1"), Size: 7, Version: []byte("1")},
	} {
		if err := s.ReadAt(t.Context(), o, make([]byte, o.Size), 0); !errors.As(err, new(*ChangedError)) || err.Error() != says {
			t.Errorf("%v, want %s", err, says)
		}
	}
	f.cut.Store(100)
	if _, err := s.Stat(t.Context(), "1"); !errors.As(err, new(*RaisedError)) || !strings.Contains(err.Error(), "have ended") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Stat(ctx, "1"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := openProgram(t, "/nowhere").Stat(t.Context(), ""); !errors.As(err, new(*RaisedError)) {
		t.Error(err)
	}
}
