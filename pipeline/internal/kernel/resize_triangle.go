package kernel

import "slices"

// A Triangle is Pillow's bilinear filter, set up for a side of In pixels: the center of output i is at (i+½)·Scale, and
// source pixels within Reach of it weigh 1−|k−center+½|·Inverse, or 0 where that is less, divided by their sum.
type Triangle struct {
	In                    int
	Scale, Reach, Inverse float64
}

// Weigh makes t.First, t.Count, t.Weights and t.Span for outputs from … from+len(t.First)−1 by vectors of AVX2; the
// slices and Stride are there already. Weights are rounded to WeightBits, and zeros at both ends of an output's are left
// out. lo is the source pixel that First is relative to, and longest the largest count. It returns false, having done
// nothing, where the vectors are too long for the outputs, or the numbers for the vectors.
func (f Triangle) Weigh(t *Taps, from int) (lo, longest int, ok bool) {
	n := len(t.First)
	if n < 4 || f.In > 1<<28 {
		return 0, 0, false
	}
	center := float64((float64(from) + 0.5) * f.Scale)
	lo = max(int(center-f.Reach+0.5), 0)
	count, weights := t.Count[:n], t.Weights[:n*t.Stride]
	clear(weights)
	end, most, zeros := triangleAVX2(&t.First[0], &count[0], &weights[0], t.Stride, n, from, f.In, lo, f.Scale, f.Reach, f.Inverse)
	if zeros != 0 {
		begin := t.dropZeros()
		lo, most = lo+begin, slices.Max(t.Count)
	}
	t.Span = int(end) - lo
	return lo, int(most), true
}

// dropZeros leaves out the weights of 0 that stand before others, and makes First relative to the first of all.
func (t *Taps) dropZeros() (begin int) {
	for i := range t.First {
		w, zeros := t.weights(i), 0
		for w[zeros] == 0 {
			zeros++
		}
		clear(w[copy(w, w[zeros:]):])
		t.First[i] += int32(zeros)
		t.Count[i] -= int32(zeros)
	}
	least := slices.Min(t.First)
	for i := range t.First {
		t.First[i] -= least
	}
	return int(least)
}
