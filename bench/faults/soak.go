//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// soak runs one job of two ranks on four nodes through faults drawn at random for some minutes. Its stream has to be the undisturbed
// one, and what lives all the time, the first node and the second rank with its agent, must not grow.
func (m *matrix) soak(ctx context.Context, minutes float64, w io.Writer) error {
	f := fault{name: "soak", nodes: 4, ranks: 2, prepare: inSegments, still: time.Duration(minutes * float64(time.Minute))}
	m.seconds = minutes * 60
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := m.start(ctx, &f, float64(f.ranks*m.batch)/(m.speed*soakLoad))
	if err != nil {
		return err
	}
	defer r.close()
	defer cancel()
	if err := r.train(ctx, f.ranks, nil); err != nil {
		return err
	}
	watched := r.watched()
	var following sync.WaitGroup
	for _, g := range watched {
		following.Go(func() { g.follow(ctx) })
	}
	defer following.Wait()
	defer cancel()
	if err := sleep(ctx, calm); err != nil {
		return err
	}
	began := time.Now()
	count, err := r.anything(ctx, began.Add(time.Duration(m.seconds*float64(time.Second))))
	if err != nil {
		return err
	}
	over := time.Now()
	if err := sleep(ctx, 2*calm); err != nil { // half of it until all are connected again
		return err
	}
	r.fault = &f
	out := result{Fault: fmt.Sprintf("%d at random in %g minutes", count, minutes), Nodes: f.nodes, Ranks: f.ranks, Demand: m.speed * soakLoad}
	if err := r.judge(&out); err != nil {
		return err
	}
	cancel()
	following.Wait()
	printHead(w)
	out.Print(w)
	ok := out.OK
	for _, g := range watched {
		ok = g.print(w, began, over) && ok
	}
	if !ok {
		return errors.New("the soak missed its limits")
	}
	return nil
}

// soakLoad is the demand as a share of what all nodes make.
const soakLoad = 0.4

// calm is for how long nothing happens before the first fault, and twice as long after the last: what is open then should be the same.
const calm = 15 * time.Second

// kinds are the faults of a soak. Those that end a process spare the first node.
func kinds() (sparing, any []fault) {
	link := func(c condition) fault { return fault{begin: worsen(c), end: worsen(condition{})} }
	return []fault{{begin: kill, end: start}, {begin: stop, end: start}}, []fault{
		{begin: send(syscall.SIGSTOP), end: send(syscall.SIGCONT)},
		{begin: unreadable, end: readable},
		link(condition{Hole: true}), link(condition{BytesPerSecond: 20e6 / 8}), link(condition{Delay: 100 * time.Millisecond}),
		link(condition{Loss: 0.01}), link(condition{FlipEvery: 4 << 20}),
	}
}

// anything lets one fault after the other happen until the time is over, and counts them.
func (r *run) anything(ctx context.Context, until time.Time) (count int, err error) {
	sparing, others := kinds()
	random := r.matrix.random
	var agent time.Time // when one was killed last: three deaths within a minute are an error
	for ; time.Now().Before(until); count++ {
		if time.Since(agent) > 45*time.Second {
			agent = time.Now()
			if err := killAgent(ctx, r, 0); err != nil {
				return count, err
			}
		}
		turn := random.IntN(len(r.fleet.nodes))
		r.fault = &others[random.IntN(len(others))]
		if turn > 0 && random.IntN(3) == 0 {
			r.fault = &sparing[random.IntN(len(sparing))]
		}
		r.fault.lasts = time.Duration(random.Int64N(int64(5 * time.Second)))
		if err := r.turn(ctx, turn); err != nil {
			return count, err
		}
		if err := sleep(ctx, time.Duration(random.Int64N(int64(2*time.Second)))); err != nil {
			return count, err
		}
		if err := r.failed(); err != nil {
			return count, err
		}
	}
	return count, nil
}

// gauge is what a process uses, over time.
type gauge struct {
	name       string
	pid        int
	goroutines func() float64 // nil: unknown
	points     []point
}

type point struct {
	at                     time.Time
	bytes, files, routines float64
}

func (r *run) watched() []*gauge {
	first := r.fleet.nodes[0]
	lines, _ := r.trainers[1].said()
	return []*gauge{
		{name: "node", pid: first.process.Process.Pid, goroutines: func() float64 { return first.metric("go_goroutines") }},
		{name: "agent", pid: lines[0].Agent},
		{name: "trainer", pid: r.trainers[1].process.Process.Pid},
	}
}

const lookEvery = 2 * time.Second

func (g *gauge) follow(ctx context.Context) {
	for sleep(ctx, lookEvery) == nil {
		p := point{at: time.Now(), bytes: resident(g.pid)}
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", g.pid))
		if err != nil {
			return // it has ended
		}
		p.files = float64(len(files))
		if g.goroutines != nil {
			p.routines = g.goroutines()
		}
		g.points = append(g.points, p)
	}
}

// resident is the memory of a process, without what it shares with others: slots are the trainer's and its agent's.
func resident(pid int) float64 {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib * 1024
		}
	}
	return 0
}

const mib = 1 << 20

// print says how a process has grown, and whether that is nothing: memory from the second quarter of the faults to the last, by a tenth or
// 8 MiB; handles and goroutines, which come and go with faults, by two from the calm before them to the calm after.
func (g *gauge) print(w io.Writer, began, over time.Time) bool {
	before, during, after := g.between(began.Add(-calm), began), g.between(began, over), g.between(over.Add(calm), over.Add(2*calm))
	n := len(during)
	if len(before) == 0 || n < 8 || len(after) == 0 {
		fmt.Fprintf(w, "%s: watched for too short a time\n", g.name)
		return true
	}
	early, late := during[n/4:n/2], during[3*n/4:]
	memory := func(p point) float64 { return p.bytes }
	from, to := median(values(early, memory)), median(values(late, memory))
	hours := late[len(late)/2].at.Sub(early[len(early)/2].at).Hours()
	files := func(p point) float64 { return p.files }
	routines := func(p point) float64 { return p.routines }
	fmt.Fprintf(w, "%-8s memory %.1f → %.1f MiB, %+.1f MiB/h; handles %.0f → %.0f", g.name, from/mib, to/mib, (to-from)/mib/hours, least(before, files), least(after, files))
	if g.goroutines != nil {
		fmt.Fprintf(w, "; goroutines %.0f → %.0f", least(before, routines), least(after, routines))
	}
	fmt.Fprintln(w)
	return to <= max(from*1.1, from+8*mib) && least(after, files) <= least(before, files)+2 && least(after, routines) <= least(before, routines)+2
}

// between are the points of that time.
func (g *gauge) between(from, to time.Time) []point {
	var some []point
	for _, p := range g.points {
		if !p.at.Before(from) && p.at.Before(to) {
			some = append(some, p)
		}
	}
	return some
}

func values(points []point, of func(point) float64) []float64 {
	v := make([]float64, len(points))
	for i, p := range points {
		v[i] = of(p)
	}
	return v
}

// least is the smallest value; one of 0 was not told.
func least(points []point, of func(point) float64) float64 {
	smallest := 0.0
	for _, v := range values(points, of) {
		if v > 0 && (smallest == 0 || v < smallest) {
			smallest = v
		}
	}
	return smallest
}
