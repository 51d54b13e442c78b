package layout

import "fmt"

// layoutError is an error that wraps ErrLayout and says itself what was looked for.
type layoutError struct{ text string }

func (e *layoutError) Error() string { return e.text }

// Is makes it an ErrLayout.
func (e *layoutError) Is(target error) bool { return target == ErrLayout }

func wrong(format string, args ...any) error { return &layoutError{fmt.Sprintf(format, args...)} }

// untoldError has words of its own in place of those of its cause, which tell what nobody may read.
type untoldError struct {
	text  string
	cause error
}

func (e *untoldError) Error() string { return e.text }

func (e *untoldError) Unwrap() error { return e.cause }
