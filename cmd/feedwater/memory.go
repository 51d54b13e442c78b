package main

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// warnOfMemory logs if a node may take more memory for batches than there is. root is / but in tests.
func warnOfMemory(log *slog.Logger, slots, share byteSize, root string) {
	most := byteSize(min(machineBytes(root), groupBytes(root)))
	if all := slots + share; all > most {
		log.Warn("--max-memory, with --share-memory, is more than there is: the node may be killed when it takes that much", "asked", all.String(), "there", most.String())
	}
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

// groupBytes is the least memory that one of this process's control groups may take, of version 2, or of version 1 in a container, where
// the group lies at the top; very much where there is no limit.
func groupBytes(root string) int64 {
	least := limitIn(filepath.Join(root, "sys/fs/cgroup/memory/memory.limit_in_bytes"))
	text, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(text)) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::") // of version 2
		if !ok {
			continue
		}
		for group = filepath.Join("/", group); ; group = filepath.Dir(group) {
			least = min(least, limitIn(filepath.Join(root, "sys/fs/cgroup", group, "memory.max")))
			if group == "/" {
				break
			}
		}
	}
	return least
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
