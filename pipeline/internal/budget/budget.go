// Package budget holds fuzz targets to what one run may take: a second of the processor, and the memory that they
// declare. It serves tests alone and starts no goroutine.
package budget

import (
	"flag"
	"runtime"
	"testing"
	"time"
)

// Hold calls f and fails the test if that allocates more than so many bytes in all or, while fuzzing, takes more than a
// second of the processor. Without -fuzz time is not looked at: machines differ.
func Hold(t testing.TB, bytes uint64, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := spent()
	f()
	took := spent() - begun
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > bytes {
		t.Errorf("%d bytes were allocated, %d declared", n, bytes)
	}
	if took > time.Second && fuzzing() {
		t.Errorf("it took %v of the processor", took)
	}
}

func fuzzing() bool {
	f := flag.Lookup("test.fuzz")
	return f != nil && f.Value.String() != ""
}
