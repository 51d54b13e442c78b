package trig

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Correctly rounded values.
func TestAnglesAreRoundedOnce(t *testing.T) {
	for _, v := range []struct{ x, sin, cos, tan, atan float64 }{
		{1e-09, 0x1.12e0be826d695p-30, 0x1.0000000000000p+0, 0x1.12e0be826d695p-30, 0x1.12e0be826d695p-30},
		{0.005, 0x1.47adbb006a986p-8, 0x1.fffe5c920a926p-1, 0x1.47aec77052979p-8, 0x1.47ad6186952b5p-8},
		{0.3, 0x1.2e9cd95baba33p-2, 0x1.e921dd42f09bap-1, 0x1.3cc2a44e29998p-2, 0x1.2a73a661eaf06p-2},
		{0.5, 0x1.eaee8744b05f0p-2, 0x1.c1528065b7d50p-1, 0x1.17b4f5bf3474ap-1, 0x1.dac670561bb4fp-2},
		{0.5235987755982988, 0x1.fffffffffffffp-2, 0x1.bb67ae8584cabp-1, 0x1.279a74590331cp-1, 0x1.edec9c192bfaap-2},
		{0.7853981633974483, 0x1.6a09e667f3bccp-1, 0x1.6a09e667f3bcdp-1, 0x1.fffffffffffffp-1, 0x1.54e04c05d06a0p-1},
		{0.99, 0x1.ac0b98d96429dp-1, 0x1.18ede09db07eep-1, 0x1.860fadcc59064p+0, 0x1.8f8d0f7321467p-1},
		{1.0, 0x1.aed548f090ceep-1, 0x1.14a280fb5068cp-1, 0x1.8eb245cbee3a6p+0, 0x1.921fb54442d18p-1},
		{1.5707963267948966, 0x1.0000000000000p+0, 0x1.1a62633145c07p-54, 0x1.d02967c31cdb5p+53, 0x1.00fe987ed02ffp+0},
		{2.0, 0x1.d18f6ead1b446p-1, -0x1.aa22657537205p-2, -0x1.17af62e0950f8p+1, 0x1.1b6e192ebbe44p+0},
		{-2.5, -0x1.326af0dcfcab1p-1, -0x1.9a2f7ef858b7dp-1, 0x1.7e79b4e00bb15p-1, -0x1.30b6d796a4da8p+0},
		{3.0, 0x1.210386db6d55bp-3, -0x1.fae04be85e5d2p-1, -0x1.23ef71254b86fp-3, 0x1.3fc176b7a8560p+0},
		{4.0, -0x1.837b9dddc1eaep-1, -0x1.4eaa606db24c1p-1, 0x1.2866f9be4de13p+0, 0x1.5368c951e9cfdp+0},
		{5.5, -0x1.693c94e0ab057p-1, 0x1.6ad6c3c07d448p-1, -0x1.fdbd31615b07ap-1, 0x1.6414d44094c7cp+0},
		{6.28, -0x1.a180fe0f0fda7p-9, 0x1.ffff55c68488ep-1, -0x1.a18188ddf1e5ap-9, 0x1.69b2ec6b19852p+0},
		{100.0, -0x1.03425b78c4db8p-1, 0x1.b981dbf665fdfp-1, -0x1.2ca74d62b5d38p-1, 0x1.8f905eb2def22p+0},
		{-12345.678, 0x1.687d5890974a5p-1, 0x1.6b94c3bbe24b8p-1, 0x1.fba5836323a4ep-1, -0x1.921a664fe1dc4p+0},
	} {
		sine, _ := SineCosine(v.x)
		if sine != v.sin || Cos(v.x) != v.cos || Tan(v.x) != v.tan || Atan(v.x) != v.atan {
			t.Errorf("of %v: %x %x %x %x, want %x", v.x, sine, Cos(v.x), Tan(v.x), Atan(v.x), v)
		}
	}
}

// What is left over is below 2⁻⁹⁰, and package math, within a unit or two, agrees.
func TestAnglesHaveTwiceTheDigits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		x := (r.Float64() - 0.5) * math.Exp2(float64(r.IntN(20)-4))
		s, c := sineCosine(x)
		if off := s.times(s).plus(c.times(c)).minus(twofold{1, 0}); math.Abs(off.hi) > 0x1p-90 {
			t.Fatalf("sin²+cos² of %v is off by %v", x, off)
		}
		s2, _ := sineCosine(2 * x)
		if off := s.times(c).times(twofold{2, 0}).minus(s2); math.Abs(off.hi) > 0x1p-90 {
			t.Fatalf("sin 2x of %v is off by %v", x, off)
		}
		if near := math.Sin(x); math.Abs(s.hi-near) > 2e-16 {
			t.Fatalf("sin %v = %v, not %v", x, s.hi, near)
		}
		if near := math.Atan(x); math.Abs(Atan(x)-near) > 5e-16 {
			t.Fatalf("atan %v = %v, not %v", x, Atan(x), near)
		}
	}
}

func TestRounded15(t *testing.T) {
	for x, want := range map[float64]float64{
		0.1234567890123454: 0.123456789012345, -0.1234567890123456: -0.123456789012346, 6.123233995736766e-17: 0, 1: 1, -0.5000000000000001: -0.5,
		0.7071067811865476: 0.707106781186548, 0.8660254037844386: 0.866025403784439,
	} {
		if got := Round15(x); got != want {
			t.Errorf("round(%v, 15) = %v, want %v", x, got, want)
		}
	}
}
