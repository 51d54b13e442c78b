package resize

import (
	"os/exec"
	"regexp"
	"testing"
)

// arm64 always has a fused multiply-add and Go uses it wherever the source allows: none may be left.
func TestNothingIsFused(t *testing.T) {
	cmd := exec.Command("go", "build", "-gcflags=-S", "filter.go", "filters.go")
	cmd.Env = append(cmd.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if !regexp.MustCompile(`FMULD`).Match(out) {
		t.Fatalf("the listing shows no float arithmetic:\n%s", out)
	}
	if fused := regexp.MustCompile(`.*\bFN?M(ADD|SUB)[DS].*`).Find(out); fused != nil {
		t.Errorf("fused: %s", fused)
	}
}
