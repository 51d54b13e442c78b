//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"
)

// matrix is what all rows share.
type matrix struct {
	program, testNode, python, data, scratch string
	speed, seconds                           float64
	batch                                    int
	random                                   *rand.Rand
	say                                      func(string)

	undisturbed stream
	samples     uint64 // of an epoch
}

// run is a job of some ranks on a fleet.
type run struct {
	matrix   *matrix
	fault    *fault
	fleet    *fleet
	trainers []*trainer // of now
	past     []*trainer // that were killed
	stream   stream
	period   float64 // seconds
	dropped  int     // samples that trainers and agents had asked for, as they told last, when they were killed
}

const (
	headroom   = 1.15            // of the capacity that is left over the demand
	warmUp     = 4 * time.Second // until the window is full
	calmFor    = time.Second     // between warm-up and fault at least, and random up to thrice that
	settled    = 3 * time.Second // after a fault, until the rate is that with it standing
	flatOut    = 5 * time.Second // for which capacity is measured
	checkpoint = 10              // steps from one to the next
	startUp    = time.Minute     // until the first batch at most
)

// start starts a fleet and the ranks of a job; the caller closes it.
func (m *matrix) start(ctx context.Context, f *fault, period float64) (*run, error) {
	scratch, err := os.MkdirTemp(m.scratch, "run")
	if err != nil {
		return nil, err
	}
	r := &run{matrix: m, fault: f, stream: stream{}, period: period, fleet: &fleet{
		program: m.testNode, scratch: scratch, data: m.data, log: m.say,
		sampleTime: time.Duration(float64(f.nodes) / m.speed * float64(time.Second)),
	}}
	if err := r.fleet.start(ctx, f.nodes, f.prepare); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *run) close() {
	for _, t := range r.trainers {
		t.kill()
	}
	r.fleet.close()
	_ = os.RemoveAll(r.fleet.scratch)
}

// train starts so many ranks and returns when each has had a batch.
func (r *run) train(ctx context.Context, ranks int, state json.RawMessage) error {
	r.trainers = nil
	for rank := range ranks {
		t, err := r.matrix.train(settings{
			Source: "photos", Nodes: r.fleet.addrs(), Token: r.fleet.tokenFile(), Batch: r.matrix.batch, Rank: rank, Ranks: ranks, Period: r.period, State: state,
		})
		if err != nil {
			return err
		}
		r.trainers = append(r.trainers, t)
	}
	return waitUntil(ctx, "no batch for", func() (bool, error) {
		if r.steps() > 0 {
			return true, nil
		}
		return false, r.failed()
	})
}

// waitUntil returns when done says so, or has an error; an error that begins with late after startUp.
func waitUntil(ctx context.Context, late string, done func() (bool, error)) error {
	for deadline := time.Now().Add(startUp); ; {
		if yes, err := done(); yes || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s %s", late, startUp)
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// failed is why a rank ended, if one did.
func (r *run) failed() error {
	var errs []error
	for _, t := range r.trainers {
		_, err := t.said()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// steps is how many all ranks have taken.
func (r *run) steps() int {
	least := 0
	for i, t := range r.trainers {
		lines, _ := t.said()
		if i == 0 || len(lines) < least {
			least = len(lines)
		}
	}
	return least
}

// taken is how many samples all ranks together have taken.
func (r *run) taken() int {
	n := 0
	for _, t := range r.trainers {
		lines, _ := t.said()
		for _, l := range lines {
			n += len(l.Samples)
		}
	}
	return n
}

// capacity is how many samples a second the fleet gives a job that takes all it gets, with the fault standing.
func (m *matrix) capacity(ctx context.Context, f *fault) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := m.start(ctx, f, 0)
	if err != nil {
		return 0, err
	}
	defer r.close()
	defer cancel()
	standing := f.begin != nil && !f.whole
	if standing && f.resumed != nil { // what ends a job is over when the next begins
		if err := f.begin(ctx, r, 0); err != nil {
			return 0, err
		}
	}
	if err := r.train(ctx, f.ranks, nil); err != nil {
		return 0, err
	}
	if standing && f.resumed == nil {
		if err := f.begin(ctx, r, 0); err != nil {
			return 0, err
		}
	}
	if err := sleep(ctx, settled); err != nil {
		return 0, err
	}
	made := r.fleet.decoded()
	before, began := r.taken(), time.Now()
	if err := sleep(ctx, flatOut); err != nil {
		return 0, err
	}
	given := float64(r.taken()-before) / time.Since(began).Seconds()
	// Ranks that had no core for a while take what was made then, faster than nodes make it.
	rate := min(given, float64(r.fleet.decoded()-made)/time.Since(began).Seconds())
	if rate <= 0 {
		return 0, errors.Join(errors.New("nothing was made, or nodes do not tell: is the machine too busy?"), r.failed())
	}
	return rate, r.failed()
}

// measure finds out the capacity, and where the fault is none of the job's that without it: in turns, the middle one of three each, since others
// may use the machine.
func (m *matrix) measure(ctx context.Context, f *fault, out *result) error {
	if !f.beside {
		var err error
		out.Capacity, err = m.capacity(ctx, f)
		return err
	}
	var with, without []float64
	for range 3 {
		for _, side := range []struct {
			*fault
			rates *[]float64
		}{{f, &with}, {&fault{nodes: f.nodes, ranks: f.ranks}, &without}} {
			rate, err := m.capacity(ctx, side.fault)
			if err != nil {
				return err
			}
			*side.rates = append(*side.rates, rate)
		}
	}
	out.Capacity, out.Calm = median(with), median(without)
	m.say(fmt.Sprintf("samples a second with the fault %.1f, without %.1f", with, without))
	return nil
}

// row measures one fault.
func (m *matrix) row(ctx context.Context, f *fault) (result, error) {
	out := result{Fault: f.name, Nodes: f.nodes, Ranks: f.ranks, Note: f.note}
	if err := m.measure(ctx, f, &out); err != nil {
		return out, err
	}
	out.Demand = out.Capacity / headroom
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := m.start(ctx, f, float64(f.ranks*m.batch)/out.Demand)
	if err != nil {
		return out, err
	}
	defer r.close()
	defer cancel()
	if err := r.train(ctx, f.ranks, nil); err != nil {
		return out, err
	}
	until := time.Now().Add(warmUp + time.Duration(m.seconds*float64(time.Second)))
	if err := r.suffer(ctx, until); err != nil {
		return out, err
	}
	if err := r.judge(&out); err != nil || f.after == nil {
		return out, err
	}
	return out, f.after(ctx, r)
}

// suffer lets the fault happen while the job trains, until the end of the run.
func (r *run) suffer(ctx context.Context, until time.Time) error {
	f := r.fault
	if err := sleep(ctx, warmUp); err != nil {
		return err
	}
	for turn := range max(f.turns, 1) {
		calm := calmFor + time.Duration(r.matrix.random.Int64N(int64(2*calmFor)))
		if err := sleep(ctx, calm); err != nil {
			return err
		}
		if err := r.turn(ctx, turn); err != nil {
			return err
		}
	}
	if err := sleep(ctx, time.Until(until)); err != nil {
		return err
	}
	return r.failed()
}

func (r *run) turn(ctx context.Context, turn int) error {
	f := r.fault
	if f.begin == nil {
		return nil
	}
	if err := f.begin(ctx, r, turn); err != nil {
		return err
	}
	if f.resumed != nil {
		return r.resume(ctx, f.resumed[turn])
	}
	if f.end == nil {
		return nil
	}
	if err := sleep(ctx, f.lasts); err != nil {
		return err
	}
	return f.end(ctx, r, turn)
}

// resume starts the job again on so many ranks, at the last checkpoint that every rank had reached.
func (r *run) resume(ctx context.Context, ranks int) error {
	r.keep()
	step := r.steps() / checkpoint * checkpoint
	r.past = append(r.past, r.trainers...)
	state := r.trainers[0].settings.State // where it began
	if step > 0 {
		lines, _ := r.trainers[0].said()
		state = lines[step-1].State
	}
	from, err := cursor(state)
	if err != nil {
		return err
	}
	r.stream.forget(from)
	r.period *= float64(ranks) / float64(len(r.trainers))
	return r.train(ctx, ranks, state)
}

// keep adds what the ranks of now have told to the stream.
func (r *run) keep() {
	for _, t := range r.trainers {
		lines, _ := t.said()
		for _, l := range lines {
			r.stream.add(l, r.matrix.samples)
		}
	}
}

// judge ends the job and compares what it got with what it should have.
func (r *run) judge(out *result) error {
	ahead := 0
	for _, t := range r.trainers {
		if err := t.finish(); err != nil {
			return err
		}
		ahead += t.ahead
	}
	r.keep()
	steps := r.steps()
	lines, _ := r.trainers[0].said()
	until, err := cursor(lines[steps-1].State)
	if err != nil {
		return err
	}
	out.Samples = len(r.stream)
	out.difference = r.stream.compare(r.matrix.undisturbed, until, r.matrix.samples)
	given := r.taken() + ahead
	for _, t := range r.past {
		lines, _ := t.said()
		for _, l := range lines {
			given += len(l.Samples)
		}
	}
	out.Extra = float64(r.fleet.decoded())/float64(given) - 1
	out.ExtraLimit = maxExtra + float64(r.dropped)/float64(given)
	out.stalls(r)
	out.verdict(r.fault, r.matrix.seconds, r.fleet.gone())
	return nil
}

// stalls finds the rank that stood still longest. What next costs when a batch is there, its median, is no stall.
func (out *result) stalls(r *run) {
	for _, t := range slices.Concat(r.past, r.trainers) {
		lines, _ := t.said()
		if len(lines) == 0 {
			continue
		}
		lines = lines[1:]
		waits := make([]float64, len(lines))
		for i, l := range lines {
			waits[i] = l.Wait
		}
		usual := median(waits)
		total := 0.0
		for _, l := range lines {
			if l.at.Sub(lines[0].at) > warmUp {
				total += max(l.Wait-usual, 0)
				out.Longest = max(out.Longest, l.Wait)
			}
		}
		out.Stall = max(out.Stall, total/r.matrix.seconds)
	}
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
