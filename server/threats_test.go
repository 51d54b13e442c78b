package server_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that the threat model names is there.
func TestThreatModelNamesTests(t *testing.T) {
	text, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, dir := range []string{".", "../client", "../cmd/feedwater", "../pipeline", "../span", "../control/share"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			code, err := os.ReadFile(path)
			all.Write(code)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	names := regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(string(text), -1)
	if len(names) < 20 {
		t.Errorf("%d tests are named", len(names))
	}
	for _, m := range names {
		if !strings.Contains(all.String(), "func "+m[1]+"(") {
			t.Errorf("there is no %s", m[1])
		}
	}
}
