package agent

import "sync"

// Warnings are on their way to the training script's log: each is told once, to a Loader that connects or gets a batch.
// The zero value works. Many goroutines may use it at once.
type Warnings struct {
	mu     sync.Mutex
	untold []string
}

// Add adds some.
func (w *Warnings) Add(messages ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.untold = append(w.untold, messages...)
}

// sendTo tells a Loader's program what nobody was told of; nil has nothing to tell.
func (w *Warnings) sendTo(l *loader) {
	if w == nil {
		return
	}
	w.mu.Lock()
	messages := w.untold
	w.untold = nil
	w.mu.Unlock()
	for _, m := range messages {
		l.sendNotice("warning", m)
	}
}
