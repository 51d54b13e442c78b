package order

import (
	"math"
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
