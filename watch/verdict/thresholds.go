package verdict

// Thresholds by which loops are judged: here, and by Python's feedwater.doctor, which has some from `go generate
// ./python/constants`. Shares are those of the time that a loop, a worker or a machine has.
const (
	// FewSteps is how many steps tell something; of fewer nothing is said.
	FewSteps = 20
	// BoundShare is the share of the step from which on data is the problem.
	BoundShare = 0.10
	// SlightShare is the share below which a wait or an idle is not worth a word, and which more nodes are meant to
	// come below.
	SlightShare = 0.02
	// StuckSeconds is after how long in next a loop counts as starving, whatever its steps were.
	StuckSeconds = 5
	// FullShare is the share from which cores, or a machine, have nothing to spare.
	FullShare = 0.85
	// MostShare is the share of workers' time in reading from which storage is to blame, and of cores in use below
	// which work that is queued is not what holds a node up.
	MostShare = 0.5
	// LazyShare is the share of busy time below which a GPU that never waits for data is worth a word.
	LazyShare = 0.7

	// CopyShare is the share of pictures without a copy that could have had one from which room for copies is the first
	// thing to do.
	CopyShare = 0.25

	// UnsteadyShare is the loss from which on the doctor does not believe that a step with data ready takes as long.
	UnsteadyShare = 0.5
	// GainShare is what must be there to gain before the doctor says that data is the problem.
	GainShare = 0.05
	// StragglerShare is how much more than the other ranks one loses before the doctor says that they wait for it.
	StragglerShare = 0.10
	// PrefetchShare is the wait below which the doctor finds nothing that workers could run ahead for.
	PrefetchShare = 0.03
)
