// Package driver reads GPUs through NVIDIA's management library. It is the only code that calls it, and calls nothing of it that the
// installed library does not have, and nothing at all before it has started: either would end the process. Every call can hang for
// ever, so callers run Open and Read beside a watchdog; Busy says what hangs. There is no Close: shutting the library down can hang
// as well, and the end of the process does the same. Read has one goroutine per GPU and waits for all of them.
//
// Without cgo there is no driver: Open says so.
package driver
