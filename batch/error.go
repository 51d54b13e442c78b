package batch

// PlanError says what is wrong with a plan or a name, and what would be right. Every node would say the same.
type PlanError struct {
	// Field is the member, e.g. "transforms[1].size".
	Field   string
	Message string
	// Nearest is a valid form near to what was given, or empty.
	Nearest string
}

func (e *PlanError) Error() string {
	s := e.Field + ": " + e.Message
	if e.Nearest != "" {
		s += "; did you mean " + e.Nearest + "?"
	}
	return s
}
