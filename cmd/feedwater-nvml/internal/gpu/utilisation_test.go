package gpu_test

import (
	"math"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/cmd/feedwater-nvml/internal/gpu"
)

// at makes a sample; times in milliseconds, shares in percent.
func at(ms int64, percent float64) gpu.Sample {
	return gpu.Sample{Time: time.Duration(ms) * time.Millisecond, Share: percent / 100}
}

func TestUtilisation(t *testing.T) {
	regular := []gpu.Sample{at(1000, 10), at(1200, 20), at(1400, 30), at(1600, 40)}
	for name, c := range map[string]struct {
		buffer          []gpu.Sample
		seen            int64
		percent         float64
		covered, newest int64
	}{
		"an empty buffer says nothing":               {nil, 700, 0, 0, 700},
		"nothing new":                                {regular, 1600, 0, 0, 1600},
		"new samples alone count":                    {regular, 1200, 35, 400, 1600},
		"the buffer rolled over":                     {regular, 500, 25, 800, 1600},
		"the first buffer":                           {regular, 0, 25, 800, 1600},
		"a long sample weighs more than a short one": {[]gpu.Sample{at(1000, 0), at(1100, 100), at(1500, 0)}, 1000, 20, 500, 1500},
		"a lone sample has the default period":       {[]gpu.Sample{at(1000, 60)}, 0, 60, 166, 1000},
		// 1200 → 9000 is no period: the sample at 9000 stands for the usual 200 ms before it, the rest is not covered.
		"a gap is not covered": {[]gpu.Sample{at(1000, 0), at(1200, 100), at(9000, 0), at(9200, 0)}, 1000, 100.0 / 3, 600, 9200},
		// The GPU was idle for 1.2 s and had no samples: the first one after it does not stand for that time.
		"idle between samples": {[]gpu.Sample{at(1000, 0), at(1200, 100), at(1400, 0), at(2600, 100), at(2800, 100)}, 1000,
			75, 800, 2800},
		// The wall clock went back by 5 s after 6200: arrival order decides what is new, not the time.
		"a clock set back":     {[]gpu.Sample{at(6000, 0), at(6200, 0), at(1300, 100), at(1500, 50)}, 6200, 75, 400, 1500},
		"a clock set forward":  {[]gpu.Sample{at(1000, 0), at(1200, 0), at(901000, 80), at(901200, 40)}, 1200, 60, 400, 901200},
		"one time given twice": {[]gpu.Sample{at(1000, 0), at(1200, 50), at(1200, 90), at(1400, 50)}, 1000, 50, 400, 1400},
		"seen is the last one of its time": {[]gpu.Sample{at(1200, 50), at(1000, 0), at(1200, 90), at(1400, 70)}, 1200,
			70, 200, 1400},
	} {
		t.Run(name, func(t *testing.T) {
			share, covered, newest := gpu.Utilisation(c.buffer, time.Duration(c.seen)*time.Millisecond)
			if math.Abs(share*100-c.percent) > 1e-9 || covered.Milliseconds() != c.covered || newest.Milliseconds() != c.newest {
				t.Errorf("%.6f %% over %v, newest %v; want %.6f %% over %d ms, newest %d ms",
					share*100, covered, newest, c.percent, c.covered, c.newest)
			}
		})
	}
}

// Polling at any rhythm adds up to the same busy time as one look at the whole.
func TestUtilisationOfOverlappingBuffersAddsUp(t *testing.T) {
	var all []gpu.Sample
	var busy time.Duration
	for i := range int64(200) {
		percent := float64(i * 37 % 101)
		all = append(all, at(1000+i*100, percent))
		if i > 0 {
			busy += time.Duration(percent) * time.Millisecond // percent of 100 ms
		}
	}
	for _, every := range []int{1, 3, 7, 20} {
		var sum, covered time.Duration
		seen := all[0].Time
		for end := 1; end <= len(all); end += every {
			share, c, newest := gpu.Utilisation(all[max(0, end-24):end], seen) // the ring holds 24
			sum += time.Duration(math.Round(share * float64(c)))
			covered += c
			seen = newest
		}
		share, c, _ := gpu.Utilisation(all[len(all)-24:], seen)
		sum += time.Duration(math.Round(share * float64(c)))
		covered += c
		if d := sum - busy; d.Abs() > time.Microsecond || covered != 199*100*time.Millisecond {
			t.Errorf("every %d samples: busy %v of %v, want %v of 19.9s", every, sum, covered, busy)
		}
	}
}
