//go:build race

package simulation

// usualSeeds is fewer, since each takes many times as long.
const usualSeeds = 25

// usualReplays is how many seeds are run twice.
const usualReplays = 3
