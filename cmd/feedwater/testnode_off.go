//go:build !testnode

package main

import (
	"github.com/spf13/pflag"

	"github.com/feedwater-io/feedwater/pipeline"
)

// addTestNode adds no flags: only builds of tag testnode have them.
func addTestNode(*pflag.FlagSet, *pipeline.TestNode) {}
