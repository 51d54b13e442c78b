//go:build !unix

package jpeg

import "testing"

func guardedCopy(_ testing.TB, b []byte) []byte { return b[:len(b):len(b)] }
