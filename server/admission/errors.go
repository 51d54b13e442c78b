package admission

import (
	"fmt"
	"time"
)

// AccessError says that somebody may not do what he asked for.
type AccessError struct {
	// Identity is who asked; empty: nobody that is known here.
	Identity string
	Message  string
}

func (e *AccessError) Error() string {
	if e.Identity == "" {
		return e.Message
	}
	return fmt.Sprintf("%q %s", e.Identity, e.Message)
}

// BusyError says that a node has no room now.
type BusyError struct {
	Message string
	// RetryAfter; 0: never, the batch is too large for this node.
	RetryAfter time.Duration
}

func (e *BusyError) Error() string { return e.Message }

// RetryBusy is when a trainer may ask a busy node again.
const RetryBusy = 200 * time.Millisecond
