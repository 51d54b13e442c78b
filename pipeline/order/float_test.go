package order

import (
	"math"
	"os/exec"
	"regexp"
	"testing"
)

// math.Exp and math.Log are within one unit of the last place, so three apart is two of our own.
func TestExpAndLogAreAccurate(t *testing.T) {
	const unit = 0x1p-52
	for x := -690.0; x < 690; x += 0.0137 {
		if got, want := Exp(x), math.Exp(x); math.Abs(got-want) > 3*unit*want {
			t.Fatalf("Exp(%v) = %v, want %v", x, got, want)
		}
	}
	for x := -0.7; x < 0.7; x += 1.1e-5 {
		if got, want := Exp(x), math.Exp(x); math.Abs(got-want) > 3*unit*want {
			t.Fatalf("Exp(%v) = %v, want %v", x, got, want)
		}
		y := math.Exp2(x * 1000)
		if got, want := Log(y), math.Log(y); math.Abs(got-want) > 3*unit*max(1, math.Abs(want)) {
			t.Fatalf("Log(%v) = %v, want %v", y, got, want)
		}
		if got, want := Log(1+x), math.Log(1+x); math.Abs(got-want) > 3*unit*max(0.5, math.Abs(want)) {
			t.Fatalf("Log(%v) = %v, want %v", 1+x, got, want)
		}
	}
	if Exp(0) != 1 || Log(1) != 0 {
		t.Errorf("Exp(0) = %v, Log(1) = %v", Exp(0), Log(1))
	}
}

// arm64 always has a fused multiply-add and Go uses it wherever the source allows: none may be left.
func TestNothingIsFused(t *testing.T) {
	cmd := exec.Command("go", "build", "-gcflags=-S", "float.go")
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
