package store

import (
	"context"
	"sync"
	"time"
)

// leastHedged is the least time after which a question is asked once more.
const leastHedged = 50 * time.Millisecond

// hedge asks a question, and once more beside where that takes three times the median. The first answer that is no error
// is taken, and the other question ended. ReadAt does so by itself, since an answer fills memory of its caller's.
func hedge[T any](ctx context.Context, s *server, m *median, ask func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	begun, answers := time.Now(), make(chan answer, 2)
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	one := func() {
		value, err := ask(ctx)
		answers <- answer{value, err}
	}
	asking.Go(one)
	after := m.slowAfter()
	if after > 0 {
		after = max(after, leastHedged)
	}
	first, took := awaitFor(answers, after)
	if !took && s.hedging.Load() < remoteReads/8 {
		s.hedging.Add(1)
		defer s.hedging.Add(-1)
		s.hedges.Add(1)
		asking.Go(one)
		if first = <-answers; first.err != nil {
			first = <-answers
		}
	} else if !took {
		first = <-answers
	}
	if first.err == nil {
		m.tell(time.Since(begun))
	}
	return first.value, first.err
}

// awaitFor is what comes within a time; 0: whenever it comes.
func awaitFor[T any](from <-chan T, most time.Duration) (came T, ok bool) {
	if most == 0 {
		return <-from, true
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case came = <-from:
		return came, true
	case <-timer.C:
		return came, false
	}
}
