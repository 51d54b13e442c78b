//go:build race

package simulation

// usualSeeds is fewer, since each takes many times as long.
const usualSeeds = 25

// usualReplays is how many seeds are run twice: goroutines that are ready at one instant run in random order under the
// race detector, and seed 2 is one of those for which that matters now and then.
const usualReplays = 1
