package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// others tells how much of the machine everybody else used since it was made.
type others struct {
	began      time.Time
	busy, ours float64
}

func newOthers() others { return others{time.Now(), busySeconds(), childSeconds()} }

func (o others) cores() float64 {
	ours := childSeconds() - o.ours
	return max(0, busySeconds()-o.busy-ours) / time.Since(o.began).Seconds()
}

// ticksPerSecond is the unit of /proc/stat on every Linux that Go runs on.
const ticksPerSecond = 100

// busySeconds is the core-seconds that this machine has been busy since it started; waiting for disks is not busy.
func busySeconds() float64 {
	total := 0.0
	for i, field := range strings.Fields(firstLine("/proc/stat")) {
		if n, err := strconv.ParseFloat(field, 64); err == nil && i >= 1 && i <= 7 && i != 4 && i != 5 {
			total += n
		}
	}
	return total / ticksPerSecond
}

// childSeconds is what the processes that this one started have used, those that have ended.
func childSeconds() float64 { return cpuSeconds(syscall.RUSAGE_CHILDREN) }

// cpuSeconds is CPU time of this process or of its children.
func cpuSeconds(who int) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		fmt.Fprintln(os.Stderr, "wire:", err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}
