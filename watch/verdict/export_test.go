package verdict

// Few and Bound are thresholds that the vectors name.
const (
	Few   = few
	Bound = bound
)
