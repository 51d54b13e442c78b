package kernel

import "testing"

// Sums that lie exactly between two results: what a neighbour in the word borrows would show.
func TestResizeSumsDoNotBorrow(t *testing.T) {
	taps := &Taps{Stride: 4, Span: 8}
	for i, w := range [][2]int32{{1 << 22, -1 << 21}, {-1 << 21, 1 << 22}, {3 << 21, -1 << 21}, {1 << 21, -1 << 21}, {-1 << 21, 5 << 20}} {
		taps.First, taps.Count = append(taps.First, int32(i)), append(taps.Count, 2)
		taps.Weights = append(taps.Weights, w[0], w[1], 0, 0)
	}
	src := make([]byte, 3*taps.Span+HorizontalRead)
	for seed := range 256 {
		for i := range src {
			src[i] = byte([]int{seed, 255, 0, 255 - seed, 1}[i*7%5])
		}
		for _, level := range Levels() {
			h, v := NewHorizontal(level), NewVertical(level)
			h.Set(taps, false, false)
			v.Set(taps)
			dst, row := make([]byte, 15), make([]byte, 8)
			h.Rows(dst, 15, src, 3*taps.Span, 1)
			for i := range taps.First {
				for c := range 3 {
					if want := taps.sample(i, func(j int) byte { return src[3*j+c] }); dst[3*i+c] != want {
						t.Fatalf("%s: across: output %d: %d, want %d", level, i, dst[3*i+c], want)
					}
				}
				v.Row(i, row, src[int(taps.First[i]):], 11)
				for x := range row {
					if want := taps.sample(i, func(j int) byte { return src[int(taps.First[i])+11*(j-int(taps.First[i]))+x] }); row[x] != want {
						t.Fatalf("%s: down: output %d: %d, want %d", level, i, row[x], want)
					}
				}
			}
		}
	}
	if !taps.liftable() || taps.bounded() {
		t.Error("these weights take another way")
	}
}
