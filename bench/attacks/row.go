//go:build linux

package main

import (
	"context"
	"errors"
	"time"
)

// stretch is what was seen in one.
type stretch struct {
	Samples     int     `json:"samples"`
	Seconds     float64 `json:"seconds"`
	CoreSeconds float64 `json:"core_seconds"` // of the node
	Bytes       int     `json:"bytes"`        // of memory that the node took at most
	Attacker    tally   `json:"attacker"`
}

func (s *stretch) rate() float64 { return float64(s.Samples) / s.Seconds }

// work is how many samples the node made for each core-second that it took.
func (s *stretch) work() float64 { return float64(s.Samples) / s.CoreSeconds }

// round is a stretch under attack and one in which the attacker spins.
type round struct {
	Attacked stretch `json:"attacked"`
	Control  stretch `json:"control"`
}

// settle is from the begin of what is done until its stretch begins: what a node lets an address have at once is over by then, and what an attack
// left behind.
var settle = map[string]time.Duration{strike: 3 * time.Second, spin: 1500 * time.Millisecond}

// row measures one attack on a node of its own.
func (o *options) row(ctx context.Context, a *attack) (result, error) {
	out := result{Attack: a.name, Unit: a.unit}
	n, err := o.startNode(ctx)
	if err != nil {
		return out, err
	}
	defer n.close()
	j, err := startJob(ctx, n, o.batch)
	if err != nil {
		return out, err
	}
	defer j.close()
	x, err := o.startAttacker(a, n)
	if err != nil {
		return out, err
	}
	defer x.close()
	if err := sleep(ctx, o.warm); err != nil {
		return out, err
	}
	for range o.rounds {
		var r round
		if err := o.stretch(ctx, n, j, x, &r.Attacked, strike, o.share); err != nil {
			return out, err
		}
		spent := r.Attacked.Attacker.CoreSeconds / r.Attacked.Attacker.Seconds // of a core
		if err := o.stretch(ctx, n, j, x, &r.Control, spin, spent); err != nil {
			return out, err
		}
		out.Rounds = append(out.Rounds, r)
	}
	out.judge(a)
	return out, nil
}

// stretch watches node and job while the attacker does one thing, and has done so for a while.
func (o *options) stretch(ctx context.Context, n *served, j *job, x *attacker, s *stretch, do string, share float64) error {
	if err := x.begin(do, share); err != nil {
		return err
	}
	if err := sleep(ctx, settle[do]); err != nil {
		return err
	}
	cpu, samples, began := n.coreSeconds(), j.samples.Load(), time.Now()
	for time.Since(began) < o.watch {
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		s.Bytes = max(s.Bytes, n.memory())
	}
	s.CoreSeconds, s.Samples, s.Seconds = n.coreSeconds()-cpu, int(j.samples.Load()-samples), time.Since(began).Seconds()
	var err error
	if s.Attacker, err = x.end(); err != nil {
		return err
	}
	if err := j.failed(); err != nil {
		return err
	}
	if s.Samples == 0 || s.CoreSeconds == 0 {
		return errors.New("the job got nothing: is the machine too busy?")
	}
	return nil
}

// sleep waits, or returns why not.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
