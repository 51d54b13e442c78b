//go:build testnode

package main

import (
	"github.com/spf13/pflag"

	"github.com/feedwater-io/feedwater/pipeline"
)

// addTestNode adds the flags by which tests run nodes of fixed speed, and nodes that compute differently. Other builds
// refuse them as they refuse any flag that they do not know.
func addTestNode(f *pflag.FlagSet, t *pipeline.TestNode) {
	f.StringVar(&t.Numerics, "test-numerics", "", "pretend to compute differently, for tests of trainers")
	f.DurationVar(&t.SampleTime, "test-sample-time", 0, "take at least so long for a sample, for tests of many nodes on one machine")
}
