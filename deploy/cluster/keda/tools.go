//go:build tools

// Package keda holds the version of KEDA's programs that the tests of deploy/cluster run. Its go.mod repeats what KEDA's own replaces, for
// replacements of other modules do not count.
package keda

import (
	_ "github.com/kedacore/keda/v2/cmd/adapter"
	_ "github.com/kedacore/keda/v2/cmd/operator"
)
