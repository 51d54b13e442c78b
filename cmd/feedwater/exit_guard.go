package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
)

// exitGuard ends the process where a command that was told to end does not: a call on storage that the kernel does not give back keeps its
// goroutine, and whoever waits for that.
type exitGuard struct {
	exit func(code int)

	mu    sync.Mutex
	grace time.Duration // from the signal, or from begin
	timer *time.Timer   // nil: not told to end
	last  []func()
	waits map[*string]struct{} // files that lie beside the data, see waitFor
	over  bool                 // the command has returned
	told  io.Writer            // what is waited for at the end
}

// endWithin is how long a command takes to end at most, from the signal on, or from the end of what else it waits for.
const endWithin = 5 * time.Second

func newExitGuard() *exitGuard { return &exitGuard{exit: os.Exit, grace: endWithin, told: os.Stderr} }

type exitGuardKey struct{}

// exitGuardOf is the guard of the command that runs with a context; tests may have none, for which one that does nothing is returned.
func exitGuardOf(ctx context.Context) *exitGuard {
	if ctx == nil { // of a command that was not begun by Execute
		return &exitGuard{over: true}
	}
	if e, ok := ctx.Value(exitGuardKey{}).(*exitGuard); ok {
		return e
	}
	return &exitGuard{over: true}
}

// allowWait says for how long the command may wait for something before it ends.
func (e *exitGuard) allowWait(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.grace = d + endWithin
}

// beforeForce has f called before the process is ended by force: to close what others see, and to say what hangs. It must not wait.
func (e *exitGuard) beforeForce(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = append(e.last, f)
}

// saysWaitingAfter is how long a file takes that nobody is told of.
const saysWaitingAfter = 5 * time.Second

// waitFor says that the command waits for the storage of a file or folder, by its flag and name, until end is called. One that takes long is told to
// say, and is named if the command is ended by force meanwhile.
func (e *exitGuard) waitFor(what string, say func(what string)) (end func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waits == nil {
		e.waits = map[*string]struct{}{}
	}
	e.waits[&what] = struct{}{}
	saying := time.AfterFunc(saysWaitingAfter, func() { say(what) })
	return func() {
		saying.Stop()
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.waits, &what)
	}
}

// sayWaits tells what the command waits for. mu is held.
func (e *exitGuard) sayWaits() {
	for what := range e.waits {
		fmt.Fprintf(e.told, "feedwater: ended while the storage of %s does not answer\n", *what)
	}
}

// logWait logs that the storage of a file does not answer.
func logWait(log *slog.Logger) func(what string) {
	return func(what string) { log.Warn("waits for storage that does not answer", "of", what) }
}

// startTimer says that the command was told to end, or ends. Saying it again does nothing.
func (e *exitGuard) startTimer() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.timer == nil && !e.over {
		e.timer = time.AfterFunc(e.grace, e.forceExit)
	}
}

// stopTimer says that the command has returned.
func (e *exitGuard) stopTimer() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	if e.timer != nil {
		e.timer.Stop()
	}
}

// forceExit ends the process.
func (e *exitGuard) forceExit() {
	e.mu.Lock()
	over, last := e.over, e.last
	e.over = true
	e.mu.Unlock()
	if over {
		return
	}
	said := make(chan struct{})
	go func() { // what it calls may hang too
		defer close(said)
		e.mu.Lock()
		e.sayWaits()
		e.mu.Unlock()
		for _, f := range last {
			f()
		}
	}()
	select {
	case <-said:
	case <-time.After(beforeForceWithin):
	}
	e.exit(exitError)
}

// beforeForceWithin is how long what was given to beforeForce may take, all together.
const beforeForceWithin = time.Second

// errHangs ends a command that has done all it can, while calls on storage did not come back.
type errHangs struct{ calls []string }

func (e *errHangs) Error() string {
	return "ended while calls on storage hang: " + strings.Join(e.calls, "; ")
}

// hangError is an *errHangs of the calls that are in flight; nil: there are none.
func hangError(roots []bulkhead.State) error {
	var calls []string
	for _, r := range roots {
		if r.Calls > 0 {
			call := fmt.Sprintf("%d on %s (%s)", r.Calls, r.Name, r.Folder)
			if r.Oldest > 0 { // else they hang with what was mounted there before
				call += fmt.Sprintf(", for up to %s", r.Oldest.Round(time.Second))
			}
			calls = append(calls, call)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	return &errHangs{calls}
}

// logHanging logs the calls that did not come back.
func logHanging(roots []bulkhead.State, log *slog.Logger) {
	if err := hangError(roots); err != nil {
		log.Error("ends without waiting any longer", "err", err)
	}
}

// sayHanging tells a person of the calls that did not come back.
func sayHanging(roots []bulkhead.State, w io.Writer) {
	if err := hangError(roots); err != nil {
		fmt.Fprintf(w, "feedwater: %v\n", err)
	}
}

// withHanging is err, or what hangs where there is none.
func withHanging(err error, roots []bulkhead.State) error {
	if err == nil || errors.Is(err, context.Canceled) {
		if hangs := hangError(roots); hangs != nil {
			return hangs
		}
	}
	return err
}
