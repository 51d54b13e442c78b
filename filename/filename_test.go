package filename

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

var names = []string{
	"", "a/b.jpg", "é.jpg", "a\xe9.jpg", "\xe9", "\xff\xfe", "\xc3", "\xc3\xa9", "\xed\xb3\xa9", "\xf0\x9f\x98", "😀\x80😀", "\uFFFD", "\uFFFD\xff",
	`\udce9`, `\\udce9`, "\\\xe9", "\"\xe9\"", "<&>\xe9\u2028", "\x00\x1f\x7f\x80", "\xc0\xaf", "\xf4\x90\x80\x80", "a\xe9\xa9b", "\xe2\x82",
}

func TestNamesComeBack(t *testing.T) {
	for _, name := range names {
		text, err := json.Marshal(Name(name))
		if err != nil || !utf8.Valid(text) {
			t.Fatalf("%q: %s, %v", name, text, err)
		}
		var back Name
		if err := json.Unmarshal(text, &back); err != nil || string(back) != name {
			t.Errorf("%q became %s, and that %q, %v", name, text, back, err)
		}
		if shown := Text(name); !utf8.ValidString(shown) || utf8.ValidString(name) && shown != name {
			t.Errorf("%q is shown as %q", name, shown)
		}
	}
}

// TestValidNamesAsEver: what is UTF-8 is written as encoding/json writes strings, so that no digest of a plan changes.
func TestValidNamesAsEver(t *testing.T) {
	for _, name := range names {
		if !utf8.ValidString(name) {
			continue
		}
		got, err := json.Marshal(struct{ N Name }{Name(name)})
		want, _ := json.Marshal(struct{ N string }{name})
		if err != nil || string(got) != string(want) {
			t.Errorf("%q: %s, %v, want %s", name, got, err, want)
		}
	}
}

// TestPythonsNames: both ends make the same text of every name.
func TestPythonsNames(t *testing.T) {
	python := os.Getenv("FEEDWATER_PYTHON")
	if python == "" {
		t.Skip("FEEDWATER_PYTHON names no Python")
	}
	var input strings.Builder
	for _, name := range names {
		text, err := json.Marshal(Name(name))
		if err != nil {
			t.Fatal(err)
		}
		input.Write(text)
		input.WriteByte('\n')
	}
	c := exec.CommandContext(t.Context(), python, "-X", "utf8", "-c", `
import json, os, sys
for line in sys.stdin:
    text = json.loads(line)
    assert os.fsdecode(os.fsencode(text)) == text, line
    print(os.fsencode(text).hex(), json.dumps(text))
`)
	c.Stdin = strings.NewReader(input.String())
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(names) {
		t.Fatalf("%d lines of %d names", len(lines), len(names))
	}
	for i, line := range lines {
		hexed, dumped, _ := strings.Cut(line, " ")
		if want := hexOf(names[i]); hexed != want {
			t.Errorf("%q is %s to Python", names[i], hexed)
		}
		var back Name
		if err := json.Unmarshal([]byte(dumped), &back); err != nil || string(back) != names[i] {
			t.Errorf("Python's %s is %q, %v, want %q", dumped, string(back), err, names[i])
		}
	}
}

func hexOf(s string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(digits[s[i]>>4])
		b.WriteByte(digits[s[i]&15])
	}
	return b.String()
}

func TestTextThatIsNoName(t *testing.T) {
	for _, text := range []string{`"\ud800"`, `"a\udc7f"`, `"\udd00"`, `"\ud800\ud800"`, `"\ud83dx"`} {
		n := Name("before")
		if err := json.Unmarshal([]byte(text), &n); !errors.Is(err, errSurrogate) || n != "before" {
			t.Errorf("%s: %q, %v", text, n, err)
		}
	}
	var wrong *json.UnmarshalTypeError
	var to struct {
		N Name `json:"n"`
	}
	if err := json.Unmarshal([]byte(`{"n": 7}`), &to); !errors.As(err, &wrong) || wrong.Field != "n" {
		t.Errorf("a number: %v", err)
	}
	if err := json.Unmarshal([]byte(`{"n": "\uD83D\uDE00\u00e9\/\uDCE9"}`), &to); err != nil || to.N != "😀é/\xe9" {
		t.Errorf("%q, %v", to.N, err)
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"aé", 2, "a"}, {"a😀", 4, "a"}, {"\x80\x80\x80\x80\x80\x80", 5, "\x80\x80"}, {"é", 0, ""}} {
		if got := Clip(c.s, c.n); got != c.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.s, c.n, got, c.want)
		}
	}
}

func FuzzName(f *testing.F) {
	for _, name := range names {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text, err := json.Marshal(Name(s))
		if err != nil {
			t.Fatal(err)
		}
		var back Name
		if err := json.Unmarshal(text, &back); err != nil || string(back) != s {
			t.Fatalf("%q, %s, %q, %v", s, text, back, err)
		}
		if json.Valid([]byte(s)) && len(s) > 0 && s[0] == '"' {
			var n, again Name
			if json.Unmarshal([]byte(s), &n) == nil {
				text, _ := json.Marshal(n)
				if json.Unmarshal(text, &again) != nil || n != again {
					t.Fatalf("%s is %q, then %q", s, n, again)
				}
			}
		}
	})
}
