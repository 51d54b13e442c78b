package layout

import "fmt"

// layoutError is an error that wraps ErrLayout and says itself what was looked for.
type layoutError struct{ text string }

func (e *layoutError) Error() string { return e.text }

// Is makes it an ErrLayout.
func (e *layoutError) Is(target error) bool { return target == ErrLayout }

func wrong(format string, args ...any) error { return &layoutError{fmt.Sprintf(format, args...)} }

// rewordedError has words of its own in place of its cause's, and is what that is.
type rewordedError struct {
	text  string
	cause error
}

func (e *rewordedError) Error() string { return e.text }

func (e *rewordedError) Unwrap() error { return e.cause }

// checkColumn returns an error where two files have the same thing, pictures or labels, in columns of other names.
func checkColumn(what, argument, first, column, other, columnOfOther string) error {
	if column == columnOfOther {
		return nil
	}
	return wrong("%s and %s: the one has %s in the column %s, and the other in %s: name one by %s=", first, other, what, column, columnOfOther, argument)
}
