// Package machine reads what this machine has done so far, and what this process has, from /proc. What cannot be read
// is unknown, which is never 0. It starts nothing and keeps nothing: two readings make a rate.
package machine

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Reading is counters that only grow, as of one moment. NaN: unknown.
type Reading struct {
	At time.Time
	// Process is the CPU time that this process has used, in seconds.
	Process float64
	// Resident is the bytes that it holds in memory; no counter.
	Resident uint64
	// Busy, IOWait and All are CPU times of the cores that this process may use, in seconds: at work, waiting for storage,
	// and altogether.
	Busy, IOWait, All float64
	// DiskRead and Received are bytes read from storage and received from the network, without loopback.
	DiskRead, Received float64
}

// Read takes a reading.
func Read(now time.Time) Reading {
	r := Reading{At: now, Process: processSeconds(), Resident: residentBytes()}
	r.Busy, r.IOWait, r.All = cpuSeconds(readFile("/proc/stat"), allowedCores(readFile("/proc/self/status")))
	r.DiskRead = diskBytes(readFile("/proc/diskstats"))
	r.Received = receivedBytes(readFile("/proc/net/dev"))
	return r
}

// RateSince is the growth per second of a counter between two readings; NaN where that is unknown.
func (r Reading) RateSince(since Reading, counter func(Reading) float64) float64 {
	seconds := r.At.Sub(since.At).Seconds()
	if rate := (counter(r) - counter(since)) / seconds; seconds > 0 && rate >= 0 {
		return rate
	}
	return math.NaN()
}

// ShareSince is the part of the CPU time of All since another reading that a counter had.
func (r Reading) ShareSince(since Reading, counter func(Reading) float64) float64 {
	all := r.All - since.All
	if share := (counter(r) - counter(since)) / all; all > 0 && share >= 0 {
		return min(share, 1)
	}
	return math.NaN()
}

func readFile(name string) []byte {
	b, _ := os.ReadFile(name) // without: unknown
	return b
}

func processSeconds() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return math.NaN()
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func residentBytes() uint64 {
	fields := bytes.Fields(readFile("/proc/self/statm"))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseUint(string(fields[1]), 10, 64)
	return pages * uint64(os.Getpagesize())
}

// allowedCores reads of /proc/PID/status which cores the process may use, by the names that /proc/stat has for them. Empty:
// it is not known.
func allowedCores(status []byte) map[string]bool {
	_, list, _ := strings.Cut(string(status), "\nCpus_allowed_list:")
	list, _, _ = strings.Cut(list, "\n")
	cores := map[string]bool{}
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		from, to, several := strings.Cut(part, "-")
		if !several {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil || last-first > 1<<16 {
			return nil
		}
		for core := first; core <= last; core++ {
			cores["cpu"+strconv.Itoa(core)] = true
		}
	}
	return cores
}

// cpuSeconds reads of /proc/stat the times of these cores, or of all where it has none of them.
func cpuSeconds(text []byte, cores map[string]bool) (busy, ioWait, all float64) {
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 8 && cores[fields[0]] {
			b, w, a := lineSeconds(fields[1:])
			busy, ioWait, all = busy+b, ioWait+w, all+a
		}
	}
	if all > 0 {
		return busy, ioWait, all
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	if fields := strings.Fields(string(line)); len(fields) > 8 && fields[0] == "cpu" {
		return lineSeconds(fields[1:])
	}
	return math.NaN(), math.NaN(), math.NaN()
}

// lineSeconds is what a line of /proc/stat says. It has, in hundredths of a second: user nice system idle iowait irq softirq
// steal …
func lineSeconds(fields []string) (busy, ioWait, all float64) {
	var times [8]float64
	for i := range times {
		times[i] = parseNumber(fields[i])
		all += times[i]
	}
	ioWait = times[4]
	return (all - times[3] - ioWait) / 100, ioWait / 100, all / 100
}

// diskBytes reads /proc/diskstats: sectors of 512 bytes read by whole devices, each counted once.
func diskBytes(text []byte) float64 {
	sum, any := 0.0, false
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 6 || !wholeDisk(fields[2]) {
			continue
		}
		sum, any = sum+512*parseNumber(fields[5]), true
	}
	if !any {
		return math.NaN()
	}
	return sum
}

// wholeDisk tells devices from partitions of them and from what is stacked on others.
func wholeDisk(name string) bool {
	if strings.HasPrefix(name, "nvme") || strings.HasPrefix(name, "mmcblk") {
		return !strings.Contains(name, "p")
	}
	for _, prefix := range []string{"sd", "vd", "xvd", "hd"} {
		if strings.HasPrefix(name, prefix) {
			return name[len(name)-1] > '9'
		}
	}
	return false
}

// receivedBytes reads /proc/net/dev: after the name and a colon the bytes received.
func receivedBytes(text []byte) float64 {
	sum, any := 0.0, false
	for line := range strings.Lines(string(text)) {
		name, rest, ok := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if !ok || len(fields) == 0 || strings.TrimSpace(name) == "lo" {
			continue
		}
		sum, any = sum+parseNumber(fields[0]), true
	}
	if !any {
		return math.NaN()
	}
	return sum
}

func parseNumber(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return math.NaN()
	}
	return f
}
