package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// List is all nodes that users name: single ones, and what sources last told.
type List struct {
	addrs   []string
	sources []Source

	mu      sync.Mutex
	answers map[Source]Answer
	all     chan struct{} // closed when each source has answered
}

// NewList returns a list that knows single nodes alone until Run. Errors are *TargetError.
func NewList(targets []string) (*List, error) {
	addrs, sources, err := Parse(targets)
	for _, addr := range addrs {
		err = cmp.Or(err, CheckAddress(addr))
	}
	if err != nil {
		return nil, err
	}
	l := &List{addrs: addrs, sources: sources, answers: map[Source]Answer{}, all: make(chan struct{})}
	if len(sources) == 0 {
		close(l.all)
	}
	return l, nil
}

// Run follows the sources until ctx ends.
func (l *List) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, s := range l.sources {
		running.Go(func() { s.Watch(ctx, func(a Answer) { l.storeAnswer(s, a) }) })
	}
	running.Wait()
}

// storeAnswer keeps an answer; one that cannot tell leaves what is known as it is.
func (l *List) storeAnswer(s Source, a Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, known := l.answers[s]
	if a.Nodes == nil {
		a.Nodes = before.Nodes
	}
	l.answers[s] = a
	if !known && len(l.answers) == len(l.sources) {
		close(l.all)
	}
}

// Nodes are the addresses of all, sorted, each once. It waits until each source has answered; one that could never tell
// is an error.
func (l *List) Nodes(ctx context.Context) ([]string, error) {
	select {
	case <-l.all:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.addrs)
	for s, a := range l.answers {
		if a.Nodes == nil {
			return nil, fmt.Errorf("%s: %w", s, a.Err)
		}
		all = append(all, a.Nodes...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Trouble is why the sources list none or not all of their nodes; nil: they list all.
func (l *List) Trouble() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all error
	for _, s := range l.sources {
		if err := l.answers[s].Err; err != nil {
			all = errors.Join(all, fmt.Errorf("%s: %w", s, err))
		}
	}
	return all
}
