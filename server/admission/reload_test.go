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

// Storage that does not answer keeps nobody waiting but once: what the file held before stays in force, and it is
// looked at again later although what hung may hang for ever.
func TestFileOnStorageThatHangs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		hangs, lost := make(chan struct{}), make(chan struct{})
		defer close(lost)
		blocked := hangs
		get, err := admission.Reload(slog.New(slog.NewTextHandler(&text, nil)), func() (string, error) {
			b, err := os.ReadFile(file)
			if string(b) != "one" && blocked != nil {
				<-blocked
			}
			return string(b), err
		}, file)
		if err != nil {
			t.Fatal(err)
		}
		expect := func(when, want string, wait time.Duration, logged string) {
			t.Helper()
			began := time.Now()
			if got := get(); got != want || time.Since(began) != wait {
				t.Errorf("%s: %q after %s, want %q after %s", when, got, time.Since(began), want, wait)
			}
			synctest.Wait()
			if got := text.String(); logged == "" && got != "" || logged != "" && strings.Count(got, logged) != 1 {
				t.Errorf("%s: logged %q, want %q", when, got, logged)
			}
			text.Reset()
		}
		expect("well", "one", 0, "")
		write("two, longer")
		expect("hangs", "one", time.Second, "does not answer")
		expect("hangs on", "one", 0, "")
		close(hangs)
		synctest.Wait()
		blocked = nil
		expect("back", "two, longer", 0, "answers again")
		blocked = lost
		write("three, longer still")
		expect("hangs again", "two, longer", time.Second, "does not answer")
		blocked = nil
		expect("mounted anew", "two, longer", 0, "")
		time.Sleep(time.Minute)
		expect("begins another look", "two, longer", 0, "answers again")
		expect("mounted anew for a minute", "three, longer still", 0, "")
	})
}
