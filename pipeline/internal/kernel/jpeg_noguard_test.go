//go:build !unix

package kernel

import "testing"

func guardedCopy(_ testing.TB, b []byte, _ bool) []byte { return b[:len(b):len(b)] }
