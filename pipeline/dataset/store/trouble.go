package store

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
)

// troubleLasts is how long what failed last is told of, where nothing was answered since.
const troubleLasts = time.Minute

// troubles are the questions to one server that wait for an answer, and what the latest of each prefix failed of where nothing was answered there
// since: who may read one prefix may not hear of another one's objects. The zero value works.
type troubles struct {
	mu       sync.Mutex
	waiting  map[*question]*waiting
	failures map[string]failure // by prefix, those of the last minute
}

// waiting is what became of a question so far.
type waiting struct {
	of       *remote
	begun    time.Time
	answered bool // it is answered, and the answer has not ended
	tries    int
	err      error // of the last try; nil: none has ended
}

// failure is what a question failed of, and when.
type failure struct {
	err error
	at  time.Time
}

// lasts reports whether it is told of yet.
func (f failure) lasts() bool { return time.Since(f.at) < troubleLasts }

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
	w := t.waiting[x]
	w.answered, w.tries, w.err = false, tries, err
}

// answers notes that the answer to a question has begun.
func (t *troubles) answers(x *question) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting[x].answered = true
}

// end notes what a question ended with. What a server answers is no trouble, unless it denies access.
func (t *troubles) end(x *question, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	prefix := t.waiting[x].of.prefix
	delete(t.waiting, x)
	delete(t.failures, prefix)
	if err == nil {
		return
	}
	if t.failures == nil {
		t.failures = map[string]failure{}
	}
	maps.DeleteFunc(t.failures, func(_ string, f failure) bool { return !f.lasts() })
	t.failures[prefix] = failure{err, time.Now()}
}

// leave forgets a question that nobody waits for any more.
func (t *troubles) leave(x *question) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waiting, x)
}

// tell is the trouble of the question of a prefix, or with below set at it or below, that has waited for longest, if it has for so long at least; else
// what the latest failed of there; nil: neither.
func (t *troubles) tell(prefix string, below bool, least time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	concerns := func(other string) bool {
		return prefix == other || below && (prefix == "" || strings.HasPrefix(other, prefix+"/"))
	}
	var oldest *question
	for x, w := range t.waiting {
		asked := concerns(w.of.prefix) || below && w.of.key(x.name) == prefix // a file whose name does not say that it is one
		if asked && (oldest == nil || w.begun.Before(t.waiting[oldest].begun)) {
			oldest = x
		}
	}
	if oldest != nil {
		w := t.waiting[oldest]
		if took := time.Since(w.begun); took >= least {
			return w.describe(oldest, took)
		}
	}
	var latest failure
	for at, f := range t.failures {
		if concerns(at) && f.lasts() && f.at.After(latest.at) {
			latest = f
		}
	}
	return latest.err
}

// describe says which object is asked for, for how long, and what the last try failed of.
func (w *waiting) describe(x *question, took time.Duration) error {
	switch {
	case w.err == nil && w.answered:
		return w.of.named(x, fmt.Errorf("under way for %s", took.Round(time.Second)))
	case w.err == nil:
		return w.of.named(x, fmt.Errorf("no answer for %s", took.Round(time.Second)))
	}
	return fmt.Errorf("%w (tried %d times in %s)", w.err, w.tries, took.Round(time.Second))
}

// Trouble is that of the Stores of an URL, and with below set of those below it too: of the question that has waited for longest, if it has for so long
// at least, else what the latest question failed of in the last minute, if none there was answered since. It is nil where there is neither, and of what
// is no URL of a server.
func Trouble(place string, below bool, least time.Duration) error {
	if !IsURL(place) {
		return nil
	}
	l, err := parse(place)
	if err != nil {
		return nil //nolint:nilerr // no URL of a server: what is wrong with it is said where it is opened
	}
	servers.mu.Lock()
	s := servers.all[l.serverName()]
	servers.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.troubles.tell(l.path, below, least)
}

// isDenial reports whether an answer is one that credentials decide: what is read next fails of it too.
func isDenial(err error) bool { return errors.As(err, new(*AccessError)) }
