package transform

import (
	"encoding/binary"
	"encoding/json"
	"image"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

func learning(t *testing.T, arguments string) Chain {
	t.Helper()
	c, err := Parse([]json.RawMessage{json.RawMessage(`{"op":"CTAugment"` + arguments + `}`)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// policyOf gives every bin the weight that f says of it.
func policyOf(f func(bin int) uint16) []byte {
	b := make([]byte, 2*policyBins)
	for i := range policyBins {
		binary.LittleEndian.PutUint16(b[2*i:], f(i))
	}
	return b
}

func TestCheckPolicy(t *testing.T) {
	c := learning(t, "")
	even := policyOf(func(int) uint16 { return 1 })
	noPosterize := policyOf(func(bin int) uint16 {
		if at := 8 * 17; bin >= at && bin < at+8 { // eight ops of 17 bins lie before it
			return 0
		}
		return 65535
	})
	for _, v := range []struct {
		chain  Chain
		policy []byte
		want   string
	}{
		{c, nil, ""},
		{c, even, ""},
		{c, even[:10], "10 bytes"},
		{c, noPosterize, "no bin of Posterize"},
		{Chain{}, nil, ""},
		{Chain{}, even, "without CTAugment"},
	} {
		err := v.chain.CheckPolicy(v.policy)
		if v.want == "" && err != nil || v.want != "" && (err == nil || !strings.Contains(err.Error(), v.want)) {
			t.Errorf("CheckPolicy of %d bytes: %v, want %q", len(v.policy), err, v.want)
		}
	}
}

// drawnBins counts how often each bin is drawn.
func drawnBins(t *testing.T, c Chain, policy []byte, samples int) (counts map[string][]int, probes int) {
	t.Helper()
	r, err := NewRunner(c, Options{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	r.Follow(policy)
	counts = map[string][]int{}
	for i := range samples {
		draws, err := r.Draws(32, 24, order.Sample{Index: uint32(i)}) //nolint:gosec // few
		if err != nil {
			t.Fatal(err)
		}
		var told struct {
			Probe bool           `json:"probe"`
			Ops   []learntReport `json:"ops"`
		}
		if err := json.Unmarshal(draws[0].Parameters, &told); err != nil {
			t.Fatal(err)
		}
		if told.Probe {
			probes++
		}
		for _, o := range told.Ops {
			if counts[o.Name] == nil {
				counts[o.Name] = make([]int, 17)
			}
			if len(o.Bins) > 0 {
				counts[o.Name][o.Bins[0]]++
			}
		}
	}
	return counts, probes
}

func TestBinsAreDrawnByTheirWeightsAndThoseOfProbesEvenly(t *testing.T) {
	const samples = 20000
	thirds := policyOf(func(bin int) uint16 { return []uint16{1, 0, 2}[bin%3] })
	counts, probes := drawnBins(t, learning(t, `,"depth":1,"probe":0`), thirds, samples)
	if probes != 0 || len(counts) != len(learntOps) {
		t.Errorf("%d probes, %d ops of %d", probes, len(counts), len(learntOps))
	}
	first := counts["AutoContrast"] // its bins are the first of all
	for bin, n := range first {
		each := samples / len(learntOps) / 17
		if want := []int{each, 0, 2 * each}[bin%3]; n < want*2/3-5 || n > want*4/3+5 || want == 0 && n > 0 {
			t.Errorf("bin %d was drawn %d times, should be about %d", bin, n, want)
		}
	}
	counts, probes = drawnBins(t, learning(t, `,"depth":1,"probe":1`), thirds, samples)
	if probes != samples || counts["AutoContrast"][1] == 0 {
		t.Errorf("%d probes of %d; bin 1, which has no weight, was drawn %d times", probes, samples, counts["AutoContrast"][1])
	}
}

func TestCTAugmentIsNoPartOfOtherTransforms(t *testing.T) {
	_, err := Parse([]json.RawMessage{json.RawMessage(`{"op":"RandomApply","transforms":[{"op":"CTAugment"}]}`)})
	if err == nil || !strings.Contains(err.Error(), "outside of other transforms") {
		t.Error(err)
	}
}

// Levels at both ends leave every size whole, on pictures as small as can be.
func TestCTAugmentOnSmallPictures(t *testing.T) {
	for _, size := range []image.Point{{1, 1}, {4, 5}, {3, 9}} {
		for i := range learntOps {
			for _, level := range []float64{0, 0.5, 0x1.fffffep-1} {
				p := &program{maxPixels: 1 << 20}
				p.beginSample(size)
				l := learntDraw{learntOp: &learntOps[i], level: [2]float64{level, level}, spot: [2]float32{0, 0.99}}
				if err := l.addTo(p); err != nil || p.currentSize() != size {
					t.Errorf("%s at %v of %v: %v, %v", l.name, level, size, p.currentSize(), err)
				}
			}
		}
	}
}
