package admission_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/server/admission"
)

// A file may be out of reach for a moment without changing: no rights, no handles, a disk that is away.
func TestFileIsTriedAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var trouble error
		parses := 0
		get, err := admission.Reload(slog.New(slog.NewTextHandler(&log, nil)), func() (string, error) {
			parses++
			b, err := os.ReadFile(file)
			return string(b), errors.Join(trouble, err)
		}, file)
		if err != nil {
			t.Fatal(err)
		}
		expect := func(when, want string, wantParses, wantWarnings int) {
			t.Helper()
			for range 3 {
				if got := get(); got != want {
					t.Errorf("%s: %q, want %q", when, got, want)
				}
			}
			if n := strings.Count(log.String(), "WARN"); parses != wantParses || n != wantWarnings {
				t.Errorf("%s: %d parses and %d warnings, want %d and %d", when, parses, n, wantParses, wantWarnings)
			}
		}
		expect("at first", "one", 1, 0)
		trouble = errors.New("permission denied")
		write("three")
		expect("out of reach", "one", 2, 1)
		time.Sleep(time.Second)
		expect("a second later", "one", 3, 1)
		trouble = errors.New("too many open files")
		time.Sleep(time.Second)
		expect("for another reason", "one", 4, 2)
		trouble = nil
		expect("within the second", "one", 4, 2)
		time.Sleep(time.Second)
		expect("in reach again", "three", 5, 2)
		time.Sleep(time.Hour)
		expect("without change", "three", 5, 2)
	})
}
