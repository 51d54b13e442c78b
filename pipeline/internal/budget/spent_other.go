//go:build !unix

package budget

import "time"

var begun = time.Now()

// spent is how long this process has run, with what it waited.
func spent() time.Duration { return time.Since(begun) }
