//go:build !linux

package kernel

import "testing"

// resizeGuarded returns n bytes; the page behind them is inaccessible on Linux only.
func resizeGuarded(_ *testing.T, n int) []byte { return make([]byte, n) }
