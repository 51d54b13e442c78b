package machine

import (
	"math"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	busy, wait, all := cpuSeconds([]byte("cpu  100 0 50 800 40 5 5 0 0 0\ncpu0 1 2 3\n"))
	if busy != 1.6 || wait != 0.4 || all != 10 {
		t.Errorf("cpu: %g %g %g", busy, wait, all)
	}
	disks := "8 0 sda 1 2 1000 4\n8 1 sda1 1 2 999 4\n259 0 nvme0n1 1 2 10 4\n259 1 nvme0n1p1 1 2 10 4\n7 0 loop0 1 2 5 4\n253 0 dm-0 1 2 5 4\n"
	if b := diskBytes([]byte(disks)); b != 512*1010 {
		t.Errorf("disk: %g", b)
	}
	if b := receivedBytes([]byte("Inter-|   Receive\n face |bytes\n    lo: 77 1\n  eth0: 5 1\n  ib0:6 1\n")); b != 11 {
		t.Errorf("network: %g", b)
	}
}

// What is missing or damaged is unknown, not 0.
func TestUnknown(t *testing.T) {
	for _, text := range []string{"", "cpu 1 2", "cpu a b c d e f g h", "x"} {
		busy, _, all := cpuSeconds([]byte(text))
		if !math.IsNaN(busy) || !math.IsNaN(all) || !math.IsNaN(diskBytes([]byte(text))) || !math.IsNaN(receivedBytes([]byte(text))) {
			t.Errorf("%q is known", text)
		}
	}
	a, b := Reading{Busy: math.NaN()}, Reading{At: time.Now(), Busy: 1, All: 1}
	if r := b.ShareSince(a, func(r Reading) float64 { return r.Busy }); !math.IsNaN(r) {
		t.Errorf("share %g", r)
	}
	if r := a.RateSince(b, func(r Reading) float64 { return r.All }); !math.IsNaN(r) {
		t.Errorf("rate %g", r)
	}
}

func TestReadNow(t *testing.T) {
	r := Read(time.Now())
	if !(r.Process > 0 && r.Resident > 0 && r.All >= r.Busy && r.Busy > 0) {
		t.Errorf("%+v", r)
	}
}
