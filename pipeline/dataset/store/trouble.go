package store

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// troubleLasts is how long what failed last is told of, where nothing was answered since.
const troubleLasts = time.Minute

// troubles are the questions to one server that wait for an answer, and what the latest failed of that nothing was answered since. The zero value
// works.
type troubles struct {
	mu      sync.Mutex
	waiting map[*question]*waiting
	failure error // nil: none, or it was answered
	failed  time.Time
}

// waiting is what became of a question so far.
type waiting struct {
	of    *remote
	begun time.Time
	tries int
	err   error // of the last try; nil: none has ended
}

// begin notes a question.
func (t *troubles) begin(of *remote, x *question) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting == nil {
		t.waiting = map[*question]*waiting{}
	}
	t.waiting[x] = &waiting{of: of, begun: time.Now()}
}

// retry notes what a try failed of that will be followed by another one.
func (t *troubles) retry(x *question, tries int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting[x].tries, t.waiting[x].err = tries, err
}

// end notes what a question ended with. What a server answers is no trouble, unless it denies access.
func (t *troubles) end(x *question, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waiting, x)
	t.failure, t.failed = err, time.Now()
}

// leave forgets a question that nobody waits for any more.
func (t *troubles) leave(x *question) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waiting, x)
}

// tell is the trouble of the question that has waited for longest, if it has for so long at least; else what the latest failed of; nil: neither.
func (t *troubles) tell(least time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var oldest *question
	for x, w := range t.waiting {
		if oldest == nil || w.begun.Before(t.waiting[oldest].begun) {
			oldest = x
		}
	}
	if oldest != nil {
		w := t.waiting[oldest]
		if took := time.Since(w.begun); took >= least {
			return w.describe(oldest, took)
		}
	}
	if t.failure != nil && time.Since(t.failed) < troubleLasts {
		return t.failure
	}
	return nil
}

// describe says which object is asked for, for how long, and what the last try failed of.
func (w *waiting) describe(x *question, took time.Duration) error {
	if w.err == nil {
		return w.of.named(x, fmt.Errorf("no answer for %s", took.Round(time.Second)))
	}
	return fmt.Errorf("%w (tried %d times in %s)", w.err, w.tries, took.Round(time.Second))
}

// Trouble is that of the server of an URL: of the question that has waited for an answer for longest, if it has for so long at least, else what the
// latest question failed of in the last minute, if none was answered since. It is nil where there is neither, and of what is no URL of a server.
func Trouble(place string, least time.Duration) error {
	if !IsURL(place) {
		return nil
	}
	l, err := parse(place)
	if err != nil {
		return nil
	}
	servers.mu.Lock()
	s := servers.all[l.serverName()]
	servers.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.troubles.tell(least)
}

// isDenial reports whether an answer is one that credentials decide: what is read next fails of it too.
func isDenial(err error) bool { return errors.As(err, new(*AccessError)) }
