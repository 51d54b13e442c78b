//go:build !race

package simulation

// usualSeeds is how many take about half a minute on two cores.
const usualSeeds = 500

// usualReplays is how many seeds are run twice.
const usualReplays = 20
