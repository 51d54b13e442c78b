//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// attacking is the first argument by which this program is asked to be the attacker.
const attacking = "attacking"

// What an attacker may be told to do until it is told to end.
const (
	strike = "strike"
	spin   = "spin"
)

// order is a line to the attacker: to begin, or with nothing to do, to end and tell.
type order struct {
	Do    string
	Share float64 // of a core that it may take
}

// tally is what the attacker tells of a stretch.
type tally struct {
	Units       int            `json:"units"`
	Answers     map[string]int `json:"answers"`
	CoreSeconds float64        `json:"core_seconds"` // that it took
	Seconds     float64        `json:"seconds"`
}

// target is what the attacker is told of the node.
type target struct {
	Attack string
	Addr   string
	Papers papers
}

// attacker is its process.
type attacker struct {
	process *exec.Cmd
	input   io.WriteCloser
	orders  *json.Encoder
	tallies *json.Decoder
}

func (o *options) startAttacker(a *attack, n *served) (*attacker, error) {
	text, err := json.Marshal(target{a.name, n.addr, n.papers})
	if err != nil {
		return nil, err
	}
	x := &attacker{process: exec.Command("/proc/self/exe", attacking, string(text))}
	x.process.Stderr = os.Stderr
	x.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if x.input, err = x.process.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := x.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	x.orders, x.tallies = json.NewEncoder(x.input), json.NewDecoder(output)
	return x, x.process.Start()
}

func (x *attacker) begin(do string, share float64) error { return x.orders.Encode(order{do, share}) }

func (x *attacker) end() (t tally, err error) {
	if err := x.orders.Encode(order{}); err != nil {
		return t, err
	}
	if err := x.tallies.Decode(&t); err != nil {
		return t, fmt.Errorf("the attacker ended: %w", err)
	}
	return t, nil
}

// close ends the process and waits for it.
func (x *attacker) close() {
	_ = x.input.Close()
	_ = x.process.Process.Kill()
	_ = x.process.Wait()
}

// runAttacker is the attacker: it follows orders until there are no more.
func runAttacker(text string) error {
	var t target
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	a := find(t.Attack)
	orders, tallies := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for {
		var begin, end order
		if err := orders.Decode(&begin); err != nil {
			return nil //nolint:nilerr // no more of them
		}
		c := &campaign{target: &t, tally: tally{Answers: map[string]int{}}, share: begin.Share, began: time.Now(), before: ownCPU()}
		ctx, stop := context.WithCancel(context.Background())
		c.start(ctx, a, begin.Do)
		err := orders.Decode(&end)
		stop()
		c.running.Wait()
		if err != nil {
			return err
		}
		if err := tallies.Encode(c.count()); err != nil {
			return err
		}
	}
}

// campaign is a stretch of attack, by several workers at once.
type campaign struct {
	target  *target
	share   float64
	began   time.Time
	before  time.Duration // CPU time of this process until then
	running sync.WaitGroup

	mu sync.Mutex
	tally
}

const workers = 8 // that attack at once: connecting takes its time

func (c *campaign) start(ctx context.Context, a *attack, do string) {
	if do == spin {
		c.running.Go(func() {
			for ctx.Err() == nil {
				spinFor(time.Millisecond)
				c.pause(ctx)
			}
		})
		return
	}
	for range workers {
		c.running.Go(func() {
			w := &worker{target: c.target, ctx: ctx}
			defer w.close()
			defer context.AfterFunc(ctx, w.hangUp)() // what it reads or writes then ends
			for ctx.Err() == nil {
				units, answers := a.strike(w)
				if ctx.Err() != nil {
					answers = nil // it was this end that hung up
				}
				c.add(units, answers)
				c.pause(ctx)
			}
		})
	}
}

func spinFor(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
	}
}

func (c *campaign) add(units int, answers []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Units += units
	for _, a := range answers {
		c.Answers[a]++
	}
}

// pause keeps the process to its share of a core.
func (c *campaign) pause(ctx context.Context) {
	if ahead := time.Duration(float64(ownCPU()-c.before)/c.share) - time.Since(c.began); ahead > time.Millisecond {
		_ = sleep(ctx, ahead)
	}
}

// count is all that happened.
func (c *campaign) count() tally {
	c.CoreSeconds, c.Seconds = (ownCPU() - c.before).Seconds(), time.Since(c.began).Seconds()
	return c.tally
}

// ownCPU is the CPU time that this process has taken.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
