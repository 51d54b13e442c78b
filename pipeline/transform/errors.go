package transform

import (
	"fmt"
	"strings"
)

// PlanError says what is wrong with a plan's transforms and what would be right.
type PlanError struct {
	// Step is the index of the transform.
	Step int
	// Op is its class; empty where none is named.
	Op string
	// Argument is empty where the op itself is meant.
	Argument string
	Problem  string
	// Nearest is a form that would be accepted, as JSON or a name; empty where there is none.
	Nearest string
}

// Field is the place in the plan.
func (e *PlanError) Field() string {
	if e.Argument == "" {
		return fmt.Sprintf("transforms[%d]", e.Step)
	}
	return fmt.Sprintf("transforms[%d].%s", e.Step, e.Argument)
}

func (e *PlanError) Error() string {
	parts := []string{fmt.Sprintf("transforms[%d]", e.Step)}
	for _, p := range []string{e.Op, e.Argument, e.Problem} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	text := strings.Join(parts, ": ")
	if e.Nearest != "" {
		text += "; nearest: " + e.Nearest
	}
	return text
}

// OpError says that an op cannot work on a picture of this size; torchvision would raise there too, or run out of
// memory. It is the sample's fault: every node would say the same.
type OpError struct {
	// Op is the op's class.
	Op    string
	Cause error
}

func (e *OpError) Error() string { return e.Op + ": " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Cause }
