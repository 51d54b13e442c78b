package server_test

import (
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
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(code)
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
