package layout

import "fmt"

// layoutError is an error that wraps ErrLayout and says itself what was looked for.
type layoutError struct{ text string }

func (e *layoutError) Error() string { return e.text }

// Is makes it an ErrLayout.
func (e *layoutError) Is(target error) bool { return target == ErrLayout }

func wrong(format string, args ...any) error { return &layoutError{fmt.Sprintf(format, args...)} }
