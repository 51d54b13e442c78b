//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// fault is a row of the table: what goes wrong, and with how many nodes and ranks.
type fault struct {
	name         string
	nodes, ranks int
	// prepare is done to a fleet before its nodes start.
	prepare func(*fleet) error
	// begin brings the fault about; turn counts from 0. end undoes it after lasts; nil: it stays.
	begin, end func(ctx context.Context, r *run, turn int) error
	lasts      time.Duration
	// turns is how often it happens, some seconds apart. 0: once.
	turns int
	// whole says that the fault takes no lasting capacity, so that demand is set to what the whole fleet makes.
	whole bool
	// still is how long the loops may stand still for it in all; 0: for half a percent of the time. gone adds the time without capacity: that for
	// which nodes did not run, as the mean of all.
	still time.Duration
	gone  bool
	// resumed is the number of ranks that the job goes on with after each turn, which has ended it. Nil: it does not end.
	resumed []int
	// beside says that the fault is none of the job's: its rate has to be what it is without.
	beside bool
	// after is done when the job has ended, with the fault standing. What it finds wrong is the row's error.
	after func(ctx context.Context, r *run) error
	// note says how it is staged, where the name does not.
	note string
}

// victim is the node that a turn hits.
func (r *run) victim(turn int) *node { return r.fleet.nodes[turn%len(r.fleet.nodes)] }

// moment is what all nodes gone, or half of them, may cost besides the time for which they are.
const moment = 500 * time.Millisecond

// faults are all rows.
func faults() []fault {
	return append([]fault{
		{name: "none", nodes: 4, ranks: 1},
		{name: "none", nodes: 8, ranks: 4},
		{name: "kill -9 at random times", nodes: 2, ranks: 1, begin: kill, end: start, lasts: 2 * time.Second, turns: 3},
		{name: "kill -9 at random times", nodes: 4, ranks: 2, begin: kill, end: start, lasts: 2 * time.Second, turns: 3},
		{name: "kill -9 at random times", nodes: 8, ranks: 4, begin: kill, end: start, lasts: 2 * time.Second, turns: 3},
		{name: "frozen for 5 s", nodes: 4, ranks: 1, begin: send(syscall.SIGSTOP), end: send(syscall.SIGCONT), lasts: 5 * time.Second, note: "SIGSTOP"},
		{name: "frozen for 5 s", nodes: 8, ranks: 4, begin: send(syscall.SIGSTOP), end: send(syscall.SIGCONT), lasts: 5 * time.Second, note: "SIGSTOP"},
		{name: "agent and nodes suspended for 8 s", nodes: 2, ranks: 1, begin: suspend(syscall.SIGSTOP), end: suspend(syscall.SIGCONT), lasts: suspended,
			whole: true, still: suspended + moment, after: noneCancelled, note: "SIGSTOP; no want of before may be lost to a deadline"},
		{name: "black hole for 8 s", nodes: 4, ranks: 1, begin: worsen(condition{Hole: true}), end: worsen(condition{}), lasts: 8 * time.Second},
		{name: "link cut to 20 Mbit/s", nodes: 2, ranks: 1, begin: worsen(condition{BytesPerSecond: 20e6 / 8})},
		{name: "200 ms latency", nodes: 4, ranks: 1, begin: worsen(condition{Delay: 100 * time.Millisecond}), note: "100 ms each way"},
		{name: "1 % loss", nodes: 4, ranks: 1, prepare: inSegments, begin: worsen(condition{Loss: 0.01}), note: "of the segments of 1448 bytes at most that arrive at either end; TCP sends them again"},
		{name: "files cannot be read on one node", nodes: 4, ranks: 1, begin: unreadable, end: readable, lasts: 8 * time.Second, note: "its limit of open files falls to 0: every open fails with EMFILE"},
		{name: "read errors on one node (EIO)", nodes: 4, ranks: 1, prepare: ownDisk, begin: breakDisk, end: mendDisk, lasts: 8 * time.Second, note: "read(2) of its photographs fails, by a seccomp filter"},
		{name: "another size behind paths of one node", nodes: 4, ranks: 1, prepare: ownData, begin: rewrite(longer)},
		{name: "another content behind paths of one node", nodes: 4, ranks: 1, prepare: ownData, begin: rewrite(other), note: "of the same size"},
		{name: "disk full for the cache", nodes: 4, ranks: 1, prepare: fullDisk, note: "its cache is a file system of 64 KiB"},
		{name: "one node 5× slower", nodes: 4, ranks: 1, begin: slow, note: "stopped for 400 of every 500 ms"},
		{name: "one node 5× slower", nodes: 8, ranks: 4, begin: slow, note: "stopped for 400 of every 500 ms"},
		{name: "one node sends flipped bits", nodes: 4, ranks: 1, begin: worsen(condition{FlipEvery: 8 << 20}), note: "one bit in 8 MiB, on the link"},
		{name: "restarted with another data set", nodes: 4, ranks: 1, prepare: ownData, begin: otherData, note: "a class is missing"},
		{name: "rolling restart of all", nodes: 4, ranks: 1, begin: stop, end: start, lasts: time.Second, turns: 4, note: "SIGTERM, a second without, one after the other"},
		{name: "half the fleet gone for 5 s", nodes: 4, ranks: 2, begin: killHalf, end: startHalf, lasts: 5 * time.Second, still: moment},
		{name: "all nodes gone for 5 s", nodes: 1, ranks: 1, begin: killAll, end: startAll, lasts: 5 * time.Second, whole: true, still: moment, gone: true},
		{name: "all nodes gone for 5 s", nodes: 4, ranks: 4, begin: killAll, end: startAll, lasts: 5 * time.Second, whole: true, still: moment, gone: true},
		{name: "agent killed", nodes: 2, ranks: 2, begin: killAgent, whole: true, still: moment},
		{name: "trainer killed, resumed on 3 ranks", nodes: 2, ranks: 2, begin: killTrainers, whole: true, resumed: []int{3}},
		{name: "trainer killed, resumed on 1 rank", nodes: 2, ranks: 4, begin: killTrainers, whole: true, resumed: []int{1}},
		{name: "1, 4, 2, 3 ranks, other nodes each time", nodes: 4, ranks: 1, begin: killMore, turns: 3, resumed: []int{4, 2, 3}, note: "trainers and one node are killed, another node comes back"},
	}, hungFaults()...)
}

func kill(_ context.Context, r *run, turn int) error { return r.victim(turn).kill() }

func stop(_ context.Context, r *run, turn int) error { return r.victim(turn).stop() }

func start(ctx context.Context, r *run, turn int) error { return r.victim(turn).start(ctx) }

func send(s syscall.Signal) func(context.Context, *run, int) error {
	return func(_ context.Context, r *run, turn int) error { return r.victim(turn).signal(s) }
}

// suspended is for how long: longer than the shortest deadline of a want.
const suspended = 8 * time.Second

// suspend sends a signal to the first rank's agent and all nodes.
func suspend(s syscall.Signal) func(context.Context, *run, int) error {
	return func(_ context.Context, r *run, _ int) error {
		if err := syscall.Kill(r.trainers[0].last().Agent, s); err != nil {
			return err
		}
		return each(r.fleet.nodes, func(n *node) error { return n.signal(s) })
	}
}

// noneCancelled looks whether nodes have given wants up.
func noneCancelled(_ context.Context, r *run) error {
	for _, n := range r.fleet.nodes {
		back := func(reason string) float64 {
			return n.metric(`feedwater_node_cancelled_wants_total{reason="` + reason + `"}`)
		}
		late := back("late") + back("silent")
		own := n.metric(`feedwater_node_failures_total{code="Canceled"}`) - late - back("moved") - back("overtaken") - back("unused")
		if late > 0 || own > 0 {
			return fmt.Errorf("%s gave %v wants up, and %v were taken from it since it did not answer", n.name, own, late)
		}
	}
	return nil
}

func worsen(c condition) func(context.Context, *run, int) error {
	return func(_ context.Context, r *run, turn int) error {
		r.victim(turn).link.set(c)
		return nil
	}
}

func unreadable(_ context.Context, r *run, turn int) error { return r.victim(turn).limitFiles(0) }

func readable(_ context.Context, r *run, turn int) error { return r.victim(turn).limitFiles(1024) }

// inSegments lets links lose segments.
func inSegments(f *fleet) error {
	for _, n := range f.nodes {
		n.link.mayLose()
	}
	return nil
}

func ownDisk(f *fleet) error {
	f.nodes[0].disk = &disk{}
	return nil
}

func breakDisk(_ context.Context, r *run, _ int) error {
	r.fleet.nodes[0].disk.broken.Store(true)
	return nil
}

func mendDisk(_ context.Context, r *run, _ int) error {
	d := r.fleet.nodes[0].disk
	d.broken.Store(false)
	r.matrix.say(fmt.Sprintf("%d reads failed with EIO", d.failed.Load()))
	return nil
}

func ownData(f *fleet) error { return f.nodes[0].ownData() }

// rewrite changes every fifth photograph of the first node's copy.
func rewrite(change func([]byte) []byte) func(context.Context, *run, int) error {
	return func(_ context.Context, r *run, _ int) error {
		files, err := r.fleet.nodes[0].photos()
		if err != nil {
			return err
		}
		for i := 0; i < len(files); i += 5 {
			text, err := os.ReadFile(files[i])
			if err != nil {
				return err
			}
			if err := os.WriteFile(files[i], change(text), 0o644); err != nil {
				return err
			}
		}
		return nil
	}
}

func longer(text []byte) []byte { return append(text, 0) }

// other is a content of the same size.
func other(text []byte) []byte {
	for i := len(text) / 2; i < len(text)/2+64; i++ {
		text[i] ^= 0x55
	}
	return text
}

func otherData(ctx context.Context, r *run, _ int) error {
	n := r.fleet.nodes[0]
	if err := n.kill(); err != nil {
		return err
	}
	files, err := n.photos()
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no photographs in %s: %w", n.data, err)
	}
	if err := os.RemoveAll(filepath.Dir(files[0])); err != nil {
		return err
	}
	return n.start(ctx)
}

func fullDisk(f *fleet) error {
	f.nodes[0].quota = 64 << 10
	return nil
}

// slow lets a node run for a fifth of the time, until the run ends.
func slow(ctx context.Context, r *run, turn int) error {
	n := r.victim(turn)
	r.fleet.running.Go(func() {
		for ctx.Err() == nil {
			_ = n.signal(syscall.SIGSTOP) // it may be gone: the run ends
			_ = sleep(ctx, 400*time.Millisecond)
			_ = n.signal(syscall.SIGCONT)
			_ = sleep(ctx, 100*time.Millisecond)
		}
	})
	return nil
}

func each(nodes []*node, do func(*node) error) error {
	for _, n := range nodes {
		if err := do(n); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) half() []*node { return f.nodes[:len(f.nodes)/2] }

func killHalf(_ context.Context, r *run, _ int) error { return each(r.fleet.half(), (*node).kill) }

func killAll(_ context.Context, r *run, _ int) error { return each(r.fleet.nodes, (*node).kill) }

func startHalf(ctx context.Context, r *run, _ int) error {
	return each(r.fleet.half(), func(n *node) error { return n.start(ctx) })
}

func startAll(ctx context.Context, r *run, _ int) error {
	return each(r.fleet.nodes, func(n *node) error { return n.start(ctx) })
}

func killAgent(_ context.Context, r *run, _ int) error {
	l := r.trainers[0].last()
	r.dropped += l.Asked
	return syscall.Kill(l.Agent, syscall.SIGKILL)
}

// killMore changes the fleet too.
func killMore(ctx context.Context, r *run, turn int) error {
	if err := killTrainers(ctx, r, turn); err != nil {
		return err
	}
	if err := r.victim(turn).kill(); err != nil || turn == 0 {
		return err
	}
	return r.victim(turn - 1).start(ctx)
}

func killTrainers(_ context.Context, r *run, _ int) error {
	for _, t := range r.trainers {
		l := t.last()
		r.dropped += l.Ready + l.Asked
		t.kill()
	}
	return nil
}
