package order

import "fmt"

// Tail says what becomes of the last step of an epoch when fewer positions are left than a full step takes.
type Tail string

// The tails. See Epoch.
const (
	Short Tail = "short"
	Valid Tail = "valid"
	Drop  Tail = "drop"
)

// Epoch is the arithmetic of an epoch's steps. A cursor c counts the positions of the epoch that all ranks together
// have consumed; it is the whole state, and it means the same to every Ranks and Batch, so a run may go on with others.
//
// Let N = Samples, W = Ranks, B = Batch, G = W·B, and divide with / rounding down. A step at cursor c takes n positions
// and moves the cursor to c+n. Rank k takes m positions from c+k·m on, v of which are valid.
//
//	Steps = 0:
//	  short  n = min(G, N−c), m = ⌈n/W⌉; ⌈(N−c)/G⌉ steps are left. All ranks take equally many, so in the last step the last
//	         W·m−n ≤ W−1 positions are N or more: repeats, see Permutation.At. v = positions below N.
//	  valid  n = min(G, N−c), m = B;     ⌈(N−c)/G⌉ steps are left. The shape never changes. v = positions below N; the others
//	         hold no sample.
//	  drop   n = G,           m = B;     (N−c)/G steps are left. v = m.
//	  No step is left at a cursor c ≥ N.
//	Steps = S > 0: Tail means nothing;
//	         n = G,           m = B;     ⌈(S·G−c)/G⌉ steps are left, none at a cursor c ≥ S·G. Positions run over N and
//	         are repeats there. v = m.
type Epoch struct {
	// Samples of the snapshot, 1 to MaxSamples.
	Samples uint64
	// Ranks that share every step, at least 1.
	Ranks int
	// Batch is the size of a full batch of one rank, at least 1.
	Batch int
	// Tail; empty means Short.
	Tail Tail
	// Steps per epoch; 0: as many as the samples give.
	Steps uint64
}

// maxSize bounds Ranks and Batch, so that nothing here can overflow.
const maxSize = 1 << 24

// Check says what is wrong with e, if anything.
func (e Epoch) Check() error {
	switch {
	case e.Samples < 1 || e.Samples > MaxSamples:
		return fmt.Errorf("samples: %d; must be 1 to %d", e.Samples, uint64(MaxSamples))
	case e.Ranks < 1 || e.Ranks > maxSize:
		return fmt.Errorf("ranks: %d; must be 1 to %d", e.Ranks, maxSize)
	case e.Batch < 1 || e.Batch > maxSize:
		return fmt.Errorf("batch: %d; must be 1 to %d", e.Batch, maxSize)
	case e.Steps > 1<<63/e.full():
		return fmt.Errorf("steps: %d of %d samples; must be at most %d", e.Steps, e.full(), 1<<63/e.full())
	}
	switch e.Tail {
	case "", Short, Valid, Drop:
		return nil
	}
	return fmt.Errorf("tail: %q; must be %q, %q or %q", string(e.Tail), Short, Valid, Drop)
}

// A Share is what one rank takes of one step.
type Share struct {
	// Position is the first of Count consecutive positions.
	Position uint64
	Count    int
	// Valid of them, the first ones, count: v of Epoch.
	Valid int
	// Next is the cursor after the step, the same for all ranks.
	Next uint64
}

// StepCount is the number of steps from the beginning.
func (e Epoch) StepCount() uint64 { return e.StepsLeft(0) }

// StepsLeft is the number of steps from a cursor on.
func (e Epoch) StepsLeft(cursor uint64) uint64 {
	end := e.end()
	if cursor >= end {
		return 0
	}
	left, full := end-cursor, e.full()
	if e.Steps == 0 && e.Tail == Drop {
		return left / full
	}
	return (left-1)/full + 1
}

// Step returns what a rank, 0 ≤ rank < Ranks, takes of the step at a cursor; false when no step is left.
func (e Epoch) Step(cursor uint64, rank int) (Share, bool) {
	if e.StepsLeft(cursor) == 0 {
		return Share{}, false
	}
	n, count := e.full(), uint64(e.Batch)
	if e.Steps == 0 {
		n = min(n, e.Samples-cursor)
		if e.Tail != Valid {
			count = (n + uint64(e.Ranks) - 1) / uint64(e.Ranks)
		}
	}
	s := Share{Position: cursor + uint64(rank)*count, Count: int(count), Valid: int(count), Next: cursor + n}
	if e.Steps == 0 && s.Position+count > e.Samples {
		s.Valid = int(max(e.Samples, s.Position) - s.Position)
	}
	return s, true
}

// end is the cursor at which no step is left.
func (e Epoch) end() uint64 {
	if e.Steps > 0 {
		return e.Steps * e.full()
	}
	return e.Samples
}

// full is the number of positions of a full step.
func (e Epoch) full() uint64 { return uint64(e.Ranks) * uint64(e.Batch) }
