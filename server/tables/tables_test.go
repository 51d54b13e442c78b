package tables

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func nameOfText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// keep keeps a text that was used at a certain time.
func keep(t *testing.T, s *Store, identity, text string, used time.Time) string {
	t.Helper()
	table := nameOfText(text)
	if err := s.Keep(identity, table, int64(len(text)), strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	path, err := s.Find(identity, table)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, used, used); err != nil {
		t.Fatal(err)
	}
	return table
}

func in(dir string) func() (string, error) { return func() (string, error) { return dir, nil } }

func TestTablesAreKeptByIdentity(t *testing.T) {
	dir := t.TempDir()
	s := New(in(dir), 100)
	table := keep(t, s, "a", "one", time.Now())
	if _, err := s.Find("b", table); !errors.As(err, new(*MissingError)) {
		t.Errorf("another identity finds it: %v", err)
	}
	path, err := New(in(dir), 100).Find("a", table)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "one" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestTheLimit: what was not used for longest goes, of this identity alone; what can never fit is refused before a byte
// is read.
func TestTheLimit(t *testing.T) {
	s := New(in(t.TempDir()), 10)
	now := time.Now()
	old, used := keep(t, s, "a", "1234", now.Add(-time.Hour)), keep(t, s, "a", "5678", now.Add(-2*time.Hour))
	other := keep(t, s, "b", "5678", now.Add(-9*time.Hour))
	if _, err := s.Find("a", used); err != nil { // now it is the one used last
		t.Fatal(err)
	}
	last := keep(t, s, "a", "abcd", now)
	for _, c := range []struct {
		identity, table string
		there           bool
	}{{"a", old, false}, {"a", used, true}, {"a", last, true}, {"b", other, true}} {
		if _, err := s.Find(c.identity, c.table); (err == nil) != c.there {
			t.Errorf("%s of %s: %v", c.table, c.identity, err)
		}
	}
	var limit *LimitError
	if err := s.Keep("a", nameOfText("x"), 11, unread{t}); !errors.As(err, &limit) || limit.Limit != 10 {
		t.Errorf("%v, want a LimitError", err)
	}
}

type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("it was read")
	return 0, io.EOF
}

// TestTwoAtOnceShareTheLimit: what is on its way counts.
func TestTwoAtOnceShareTheLimit(t *testing.T) {
	s := New(in(t.TempDir()), 10)
	text := "123456"
	first, writer := io.Pipe()
	done := make(chan error)
	go func() { done <- s.Keep("a", nameOfText(text), 6, first) }()
	if _, err := writer.Write([]byte("123")); err != nil {
		t.Fatal(err)
	}
	if err := s.Keep("a", nameOfText("abcdef"), 6, unread{t}); !errors.As(err, new(*LimitError)) {
		t.Errorf("%v, want a LimitError", err)
	}
	keep(t, s, "b", "abcdef", time.Now())
	if _, err := writer.Write([]byte("456")); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close() // nothing is written any more
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	keep(t, s, "a", "abcdef", time.Now())
}

// TestOtherText: what is not as its name says is not kept, and nothing is left of it.
func TestOtherText(t *testing.T) {
	dir := t.TempDir()
	s := New(in(dir), 100)
	table := nameOfText("text")
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		bytes int64
		text  io.Reader
		want  error
	}{
		"other":   {4, strings.NewReader("tixt"), ErrOtherText},
		"short":   {4, strings.NewReader("tex"), ErrOtherText},
		"long":    {4, strings.NewReader("texts"), ErrOtherText},
		"a break": {4, io.MultiReader(bytes.NewReader([]byte("te")), failing{broken}), broken},
	} {
		if err := s.Keep("a", table, c.bytes, c.text); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if err := s.Keep("a", "../../x", 4, strings.NewReader("text")); err == nil {
		t.Error("a name that leads out is taken")
	}
	left, err := filepath.Glob(filepath.Join(dir, "tables", "*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestAFolderThatCannotBeWritten: lists are kept for this process alone.
func TestAFolderThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := New(in(file), 100)
	path, err := s.Find("", keep(t, s, "", "one", time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}

// fullFile has room for so many bytes, or fails when it is closed.
type fullFile struct {
	file
	room    int
	closing error
}

func (f *fullFile) Write(p []byte) (int, error) {
	n, err := f.file.Write(p[:min(len(p), f.room)])
	if f.room -= n; err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

func (f *fullFile) Close() error { return errors.Join(f.file.Close(), f.closing) }

// TestAFolderWithoutRoom: what a folder takes no more of is kept, whole, in the private one, and that is told. Where that
// takes no more either the error says both, and nothing is left of the list.
func TestAFolderWithoutRoom(t *testing.T) {
	text := strings.Repeat("0123456789", 10_000)
	for name, c := range map[string]struct {
		own, private fullFile
		nowhere      bool
	}{
		"at once":         {own: fullFile{room: 0}, private: fullFile{room: 1 << 20}},
		"behind a part":   {own: fullFile{room: 70_001}, private: fullFile{room: 1 << 20}},
		"when it is kept": {own: fullFile{room: 1 << 20, closing: syscall.EDQUOT}, private: fullFile{room: 1 << 20}},
		"nowhere":         {own: fullFile{room: 70_001}, private: fullFile{room: 70_002}, nowhere: true},
		"nowhere at last": {own: fullFile{room: 70_001}, private: fullFile{room: 99_999}, nowhere: true},
	} {
		t.Run(name, func(t *testing.T) {
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			dir := t.TempDir()
			s := New(in(dir), 1<<20)
			s.create = func(at string) (file, error) {
				f, err := createTemp(at)
				full := c.private
				if strings.HasPrefix(at, dir) {
					full = c.own
				}
				full.file = f
				return &full, err
			}
			var told []error
			s.Trouble = func(err error) { told = append(told, err) }
			for range 2 {
				err := s.Keep("a", nameOfText(text), int64(len(text)), strings.NewReader(text))
				if kept := (*KeepError)(nil); c.nowhere != (err != nil) || c.nowhere && (!errors.As(err, &kept) || !errors.Is(err, syscall.ENOSPC) ||
					!strings.Contains(err.Error(), "no folder takes it: ")) {
					t.Fatalf("error %v", err)
				}
			}
			if trouble := (*KeepError)(nil); len(told) != 1 || !errors.As(told[0], &trouble) || strings.HasPrefix(trouble.Folder, temporary) == c.nowhere {
				t.Errorf("told: %v", told)
			}
			if c.nowhere {
				left, err := filepath.Glob(filepath.Join(temporary, "*", "*", "*"))
				if err != nil || len(left) > 0 {
					t.Errorf("left: %q, %v", left, err)
				}
				return
			}
			path, err := s.Find("a", nameOfText(text))
			if err != nil {
				t.Fatal(err)
			}
			if kept, err := os.ReadFile(path); err != nil || string(kept) != text {
				t.Errorf("%d bytes, %v", len(kept), err)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "tables", "*", "*")); err != nil || len(left) > 0 {
				t.Errorf("left: %q, %v", left, err)
			}
		})
	}
}
