package pick

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
)

const (
	connectLeast = 8
	connectTimes = 4.0 // the nodes needed
)

// ConnectionCount is to how many nodes a trainer connects whose steps take pace seconds, where a step's batch takes one
// node so many seconds.
func ConnectionCount(takes, pace float64) int {
	if !(takes > 0) || !(pace > 0) {
		return connectLeast
	}
	return int(max(connectLeast, min(math.Ceil(connectTimes*takes/pace), 1<<20)))
}

// NodeScore is a node's place in a trainer's order of preference, the highest first: by rendezvous hash, so that
// trainers spread over nodes, and a node that comes or goes moves few.
func NodeScore(trainer, node string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(trainer))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(node))
	return mixBits(h.Sum64())
}

// BreakTie decides between nodes that would have the want of that number equally soon: of their scores the one with the
// highest.
func BreakTie(score, want uint64) uint64 { return mixBits(score ^ mixBits(want)) }

// mixBits makes every bit depend on all, with the odd constants of splitmix64.
func mixBits(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// ChooseSubset are the nodes that a trainer connects to: those of the highest Score, as many as it takes for n of them
// not to be down, all if there are fewer.
func ChooseSubset[T any](nodes []T, n int, score func(T) uint64, down func(T) bool) []T {
	sorted := slices.Clone(nodes)
	slices.SortStableFunc(sorted, func(a, b T) int { return cmp.Compare(score(b), score(a)) })
	for i, node := range sorted {
		if n <= 0 {
			return sorted[:i]
		}
		if !down(node) {
			n--
		}
	}
	return sorted
}
