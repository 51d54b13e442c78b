package main

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/bytesize"
)

// addKeep is the flag --keep, or FEEDWATER_KEEP of an agent.
func addKeep(f *pflag.FlagSet, keep *bytesize.Size) {
	f.Var(keep, "keep", "memory for decoded pictures, which later epochs need not decode again: those that take longest to decode; none by default")
}

// checkKeep refuses more memory for decoded pictures than there is. name is what the flag is called.
func checkKeep(name string, keep bytesize.Size) error {
	if most := bytesize.Size(min(machineBytes("/"), groupBytes("/"))); keep > most {
		return fmt.Errorf("%s %s: there are %s of memory, for all that runs here", name, &keep, &most)
	}
	return nil
}

// warnOfMemory logs if a node may take more memory for batches and kept pictures than there is. root is / but in tests.
func warnOfMemory(log *slog.Logger, slots, share, keep bytesize.Size, root string) {
	most := bytesize.Size(min(machineBytes(root), groupBytes(root)))
	if all := slots + share + keep; all > most {
		log.Warn("--max-memory, with --share-memory and --keep, is more than there is: the node may be killed when it takes that much", "asked", all.String(), "there", most.String())
	}
}

// standardMemory is what batches may take where nobody says: 4 GiB, or half of what there is if that is less. The other half is for pictures in
// the making, indexes, and the kernel's pages of files. root is / but in tests.
func standardMemory(root string) bytesize.Size {
	return max(leastMemory, min(4<<30, bytesize.Size(min(machineBytes(root), groupBytes(root))/2)))
}

// machineBytes is the machine's memory; very much where it does not tell.
func machineBytes(root string) int64 {
	text, _ := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	for line := range strings.Lines(string(text)) {
		number, ok := strings.CutPrefix(line, "MemTotal:")
		if !ok {
			continue
		}
		if kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(number), "kB")), 10, 53); err == nil {
			return kib << 10
		}
	}
	return math.MaxInt64
}

// groupBytes is the least memory that one of this process's control groups may take, of version 1 or 2; very much where there is no limit. In a
// container the group's own limit stands at the top, whatever the group is called outside.
func groupBytes(root string) int64 {
	least := int64(math.MaxInt64)
	text, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		switch {
		case len(fields) < 3:
		case fields[0] == "0" && fields[1] == "":
			for _, limit := range []string{"memory.max", "memory.high"} { // above the latter a group is slowed down until it stands
				least = min(least, limitAbove(filepath.Join(root, "sys/fs/cgroup"), fields[2], limit))
			}
		case slices.Contains(strings.Split(fields[1], ","), "memory"):
			least = min(least, limitAbove(filepath.Join(root, "sys/fs/cgroup/memory"), fields[2], "memory.limit_in_bytes"))
		}
	}
	return least
}

// limitAbove is the least number in files of this name in the folder of a group below top, and in all folders above it.
func limitAbove(top, group, name string) int64 {
	least := int64(math.MaxInt64)
	for group = filepath.Join("/", group); ; group = filepath.Dir(group) {
		least = min(least, limitIn(filepath.Join(top, group, name)))
		if group == "/" {
			return least
		}
	}
}

// limitIn is the number in a file; very much where there is no file, or "max" in it.
func limitIn(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return math.MaxInt64
	}
	return n
}

// besideSlots is what a node may take besides the memory for batches and indexes before the garbage collector hurries, in bytes.
const besideSlots = 256 << 20

// memoryLimit keeps garbage from making a process much larger than what it is known to hold, unless the environment says otherwise.
type memoryLimit struct {
	off    bool
	before int64

	mu   sync.Mutex
	held int64
}

// limitMemory begins with so many bytes that are held; restoreLimit ends it.
func limitMemory(held int64) *memoryLimit {
	l := &memoryLimit{off: os.Getenv("GOMEMLIMIT") != ""}
	if !l.off {
		l.before = debug.SetMemoryLimit(-1)
	}
	l.addHeld(held)
	return l
}

// addHeld adds to what is held, or takes from it.
func (l *memoryLimit) addHeld(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held += bytes
	if !l.off {
		debug.SetMemoryLimit(l.held + besideSlots)
	}
}

func (l *memoryLimit) restoreLimit() {
	if !l.off {
		debug.SetMemoryLimit(l.before)
	}
}
