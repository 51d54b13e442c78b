package machine

import (
	"math"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParse(t *testing.T) {
	const stat = "cpu  100 0 50 800 40 5 5 0 0 0\ncpu0 1 2 3\ncpu1 10 0 0 80 10 0 0 0 0 0\ncpu2 20 0 0 70 10 0 0 0 0 0\ncpu12 60 0 0 20 20 0 0 0 0 0\nintr 1 2 3 4 5 6 7 8 9\n"
	for list, want := range map[string][3]float64{
		"": {1.6, 0.4, 10}, "5-9": {1.6, 0.4, 10}, "x": {1.6, 0.4, 10}, "0": {1.6, 0.4, 10}, // of which it has no times
		"1": {0.1, 0.1, 1}, "1-2": {0.3, 0.2, 2}, "0,2,12-13": {0.8, 0.3, 2},
	} {
		busy, wait, all := cpuSeconds([]byte(stat), allowedCores([]byte("Name:\tx\nCpus_allowed_list:\t"+list+"\nMems_allowed:\t1\n")))
		if math.Abs(busy-want[0])+math.Abs(wait-want[1])+math.Abs(all-want[2]) > 1e-9 {
			t.Errorf("cores %q: %g %g %g", list, busy, wait, all)
		}
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
		busy, _, all := cpuSeconds([]byte(text), map[string]bool{"cpu0": true})
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

// What a process may not use is not among what its cores do.
func TestOwnCores(t *testing.T) {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &all); err != nil || all.Count() < 2 {
		t.Skip("one core, or it is not known which")
	}
	core := 0
	for ; !all.IsSet(core); core++ {
	}
	one.Set(core)
	runtime.LockOSThread() // for good: the thread ends with the test
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile("/proc/thread-self/status")
	if got := allowedCores(status); err != nil || len(got) != 1 || !got["cpu"+strconv.Itoa(core)] {
		t.Errorf("%v, %v", got, err)
	}
}

func TestReadNow(t *testing.T) {
	r := Read(time.Now())
	if !(r.Process > 0 && r.Resident > 0 && r.All >= r.Busy && r.Busy > 0) {
		t.Errorf("%+v", r)
	}
}
