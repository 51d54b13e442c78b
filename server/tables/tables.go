// Package tables keeps the lists of files that trainers give to a node: in a folder, by who gave them and by the
// SHA-256 of their text, so that what has a name is whole and never changes. Each identity has a limit of bytes; its
// lists that were not used for longest make room for a new one. A list that is gone is given again. It has no
// goroutines, and knows no plan and no protocol.
package tables

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// MissingError says that a list was not given, or had to make room.
type MissingError struct{ Table string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("this node has no table %.12s: the trainer has to send it", e.Table)
}

// LimitError says that a list does not fit.
type LimitError struct{ Bytes, Limit int64 }

func (e *LimitError) Error() string {
	return fmt.Sprintf("a table of %d bytes, where all tables of an identity may have %d (--table-limit), those on their way included", e.Bytes, e.Limit)
}

// KeepError says that a list is not kept in the folder.
type KeepError struct {
	// Folder that it is kept in as long as the Store lasts; empty: it is not kept.
	Folder string
	// Cause that it is not kept where it should be, or nowhere.
	Cause error
}

// Error says where the list is kept, and why there.
func (e *KeepError) Error() string {
	if e.Folder == "" {
		return fmt.Sprintf("no folder takes it: %v", e.Cause)
	}
	return fmt.Sprintf("it is kept in %s until this process ends: %v", e.Folder, e.Cause)
}

// Unwrap is the Cause.
func (e *KeepError) Unwrap() error { return e.Cause }

// ErrOtherText says that a list is not the one that its name says.
var ErrOtherText = errors.New("the table's text is not what its SHA-256 says")

// ending of the files' names; unfinished is that of those that are being written, staleAfter how old one is whose
// writer has gone.
const (
	ending     = ".jsonl"
	unfinished = ".tmp"
	staleAfter = 24 * time.Hour
)

// Store keeps lists. All methods may be called by many goroutines at once, and several processes may share a folder.
type Store struct {
	folder func() (string, error)
	limit  int64

	// Trouble, if set before use, is told, once a minute at most, that a list is not kept in the folder, and why: a *KeepError.
	Trouble func(error)
	create  func(dir string) (file, error)

	mu      sync.Mutex
	private string           // in place of a folder that cannot be written; "" while there is none
	told    time.Time        // when Trouble was
	coming  map[string]int64 // bytes that are being written, by identity
}

// New returns a Store in the folder that a function names, with so many bytes for each identity. Where that folder
// cannot be written, or has no room, one that lasts as long as the Store takes its place.
func New(folder func() (string, error), limit int64) *Store {
	return &Store{folder: folder, limit: limit, create: createTemp, coming: map[string]int64{}}
}

// Close removes what lasts no longer than the Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.private == "" {
		return nil
	}
	return os.RemoveAll(s.private)
}

// nameOf is the name of an identity's folder: any text may be an identity.
func nameOf(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return hex.EncodeToString(sum[:16])
}

// Find returns the file of a list that the identity has given; else a *MissingError. The file may be removed later: who
// has opened it goes on.
func (s *Store) Find(identity, table string) (string, error) {
	s.mu.Lock()
	private := s.private
	s.mu.Unlock()
	for _, dir := range []string{s.Folder(), private} {
		if dir == "" {
			continue
		}
		path := filepath.Join(dir, nameOf(identity), table+ending)
		if fi, err := os.Stat(path); err == nil && fi.Mode().IsRegular() {
			now := time.Now()
			_ = os.Chtimes(path, now, now) // it goes later; a folder of others may refuse
			return path, nil
		}
	}
	return "", &MissingError{table}
}

// Folder is where lists are kept as long as there is room; "" if there is none.
func (s *Store) Folder() string {
	dir, err := s.folder()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "tables")
}

// Keep reads a list of so many bytes and keeps it by its SHA-256, in hex. Errors are those of the reader, *LimitError,
// ErrOtherText, or a *KeepError.
func (s *Store) Keep(identity, table string, bytes int64, text io.Reader) error {
	if sum, err := hex.DecodeString(table); err != nil || len(sum) != sha256.Size || table != strings.ToLower(table) {
		return fmt.Errorf("%w: %.80q is no SHA-256 in hex", ErrOtherText, table)
	}
	if err := s.reserveBytes(identity, bytes); err != nil {
		return err
	}
	defer s.returnBytes(identity, bytes)
	f := &tableFile{store: s, identity: identity}
	defer f.discard()
	if err := f.open(); err != nil {
		return err
	}
	if err := copyWhole(f, text, table, bytes); err != nil {
		return err
	}
	return f.commit(table + ending)
}

// reserveBytes counts a list that comes.
func (s *Store) reserveBytes(identity string, bytes int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes < 0 || bytes > s.limit-s.coming[identity] {
		return &LimitError{bytes, s.limit}
	}
	s.coming[identity] += bytes
	return nil
}

func (s *Store) returnBytes(identity string, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.coming[identity] -= bytes; s.coming[identity] == 0 {
		delete(s.coming, identity)
	}
}

// privateFolder is the folder of this Store alone, which is made when it is needed first.
func (s *Store) privateFolder() (dir string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.private == "" {
		s.private, err = os.MkdirTemp("", "feedwater-tables-")
	}
	return s.private, err
}

// tell tells what troubles the Store, unless it did so a short time ago: trainers ask over and over.
func (s *Store) tell(err error) {
	now := time.Now()
	s.mu.Lock()
	due := s.told.IsZero() || now.Sub(s.told) >= tellEvery
	if due {
		s.told = now
	}
	s.mu.Unlock()
	if due && s.Trouble != nil {
		s.Trouble(err)
	}
}

const tellEvery = time.Minute

// copyWhole copies a text and compares it with what it should be.
func copyWhole(to io.Writer, text io.Reader, table string, bytes int64) error {
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(text, bytes+1))
	if err != nil {
		return err
	}
	if n != bytes || hex.EncodeToString(sum.Sum(nil)) != table {
		return ErrOtherText
	}
	return nil
}

// makeRoom removes lists of an identity, those that were not used for longest first, until the rest and what comes are
// within the limit.
func (s *Store) makeRoom(dir, identity string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	total := s.coming[identity]
	s.mu.Unlock()
	var all []fs.FileInfo
	for _, e := range entries {
		fi, err := e.Info()
		switch {
		case err != nil:
		case strings.HasSuffix(e.Name(), ending):
			all = append(all, fi)
			total += fi.Size()
		case strings.HasSuffix(e.Name(), unfinished) && time.Since(fi.ModTime()) > staleAfter:
			_ = os.Remove(filepath.Join(dir, e.Name())) // the next one will try again
		}
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, fi := range all {
		if total <= s.limit {
			break
		}
		if err := os.Remove(filepath.Join(dir, fi.Name())); err == nil || errors.Is(err, fs.ErrNotExist) {
			total -= fi.Size()
		}
	}
	return nil
}
