//go:build !unix

package guardtest

import "testing"

func guardedPages(_ testing.TB, n int) (pages []byte, page int) { return make([]byte, n), 0 }
