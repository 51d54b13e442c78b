//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// hungFaults are rows of one node with two roots, or an index, on storage that hangs: the job on the other root is watched.
func hungFaults() []fault {
	row := func(name, note string, prepare func(*fleet) error, begin func(context.Context, *run, int) error) fault {
		return fault{name: name, nodes: 1, ranks: 1, prepare: prepare, begin: begin, note: note, beside: true, after: endsInTime}
	}
	return []fault{
		{name: "nothing hangs", nodes: 1, ranks: 1, beside: true, note: "both sides the same: what is measured of nothing"},
		row("hung: reads of another root", "FUSE; a job on it stands still", hungRoot(true), hangRoot("read")),
		row("hung: opens of another root", "FUSE", hungRoot(true), hangRoot("open")),
		row("hung: looks at files of another root", "FUSE; lookup and getattr, which stat(2) waits for", hungRoot(true), hangRoot("look")),
		row("hung: listings of another root", "FUSE", hungRoot(true), hangRoot("readdir")),
		row("hung: reads that cannot be killed", "FUSE; the process stays, without its port", hungRoot(false), hangRoot("read")),
		row("hung: reads of half of another root", "FUSE; the other half answers, and the root is sick once, not over and over", hungRoot(true), hangHalf).and(isSickOnce),
		row("hung: a root that is mounted anew", "FUSE; umount -l while reads hang, and another file system in its place: the job on it goes on", hungRoot(true),
			hangRoot("read")).and(goesOnMountedAnew),
		row("hung: the folder of lists", "FUSE; the node is started with --cache-dir on it", hungLists, nothingMore),
		row("hung: what lies beside the data", "FUSE; the files of --token-file, --audit and --announce, while a job ends and one begins", hungBeside, hangBeside),
		row("hung: the index's folder", "FUSE; listing, reading, writing and fsync of it", hungIndex, nothingMore),
	}
}

// and has more looked at when the job has ended, before the rest.
func (f fault) and(look func(context.Context, *run) error) fault {
	rest := f.after
	f.after = func(ctx context.Context, r *run) error {
		if err := look(ctx, r); err != nil {
			return err
		}
		return rest(ctx, r)
	}
	return f
}

// isSickOnce looks at the node's other root: it does not turn well and sick in turns while a part of it hangs.
func isSickOnce(_ context.Context, r *run) error {
	const (
		few  = 3 // reads that are in flight at once of a root of a node with one worker
		sick = `feedwater_node_root_sick{root="hung"}`
		over = `feedwater_node_root_timeouts_total{root="hung"}`
	)
	n := r.fleet.nodes[0]
	if n.metric(sick) != 1 || n.metric(over) > few {
		return fmt.Errorf("sick: %v, and %v reads were given up", n.metric(sick), n.metric(over))
	}
	return nil
}

// mountedAnew is how long a root may stay sick when it was mounted anew.
const mountedAnew = 15 * time.Second

// goesOnMountedAnew repairs the node's other root as file servers are: what hangs is unmounted lazily, and another file system is mounted there.
// The root has to be well soon, and the job on it to go on, although what was open hangs for ever.
func goesOnMountedAnew(ctx context.Context, r *run) error {
	const sick = `feedwater_node_root_sick{root="hung"}`
	n, f, t := r.fleet.nodes[0], r.fleet.filer, r.fleet.beside[0]
	if n.metric(sick) != 1 {
		return fmt.Errorf("the root is not sick")
	}
	if err := syscall.Unmount(f.folder, syscall.MNT_DETACH); err != nil {
		return err
	}
	if err := syscall.Mount(r.fleet.data, f.folder, "", syscall.MS_BIND, ""); err != nil {
		return err
	}
	before, _ := t.said()
	began := time.Now()
	for {
		lines, err := t.said()
		if err != nil {
			return err
		}
		if n.metric(sick) == 0 && len(lines) >= len(before)+20 {
			r.matrix.say(fmt.Sprintf("the job on it went on %.1f s after it was mounted anew", time.Since(began).Seconds()))
			return nil
		}
		if time.Since(began) > mountedAnew {
			return fmt.Errorf("%s after it was mounted anew: sick %v, %d more batches", mountedAnew, n.metric(sick), len(lines)-len(before))
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

const (
	hungDrain = 2 * time.Second
	// endWithin is how long a node may take to end beyond its drain timeout.
	endWithin = 5 * time.Second
)

// hungRoot gives the first node another root, on a filer.
func hungRoot(lenient bool) func(*fleet) error {
	return func(f *fleet) error {
		folder := filepath.Join(f.scratch, "filer")
		filer, err := mountFiler(f.data, folder)
		if err != nil {
			return err
		}
		filer.lenient = lenient
		f.filer = filer
		f.nodes[0].more = []string{"--data", "hung=" + folder, "--read-timeout", "2s", "--drain-timeout", hungDrain.String()}
		return nil
	}
}

// hangRoot lets calls of that root hang while a job is at it.
func hangRoot(calls ...string) func(context.Context, *run, int) error {
	return func(ctx context.Context, r *run, _ int) error {
		r.fleet.filer.hang(calls...)
		t, err := r.matrix.train(settings{Source: "hung", Nodes: r.fleet.addrs(), Batch: r.matrix.batch, Ranks: 1})
		if err != nil {
			return err
		}
		r.fleet.beside = append(r.fleet.beside, t)
		return r.fleet.filer.untilStuck(ctx)
	}
}

// hungBeside puts the first node's tokens, its audit log and its announcement on a filer.
func hungBeside(f *fleet) error {
	folder := filepath.Join(f.scratch, "filer")
	filer, err := mountFiler(f.scratch, folder+".beside")
	if err != nil {
		return err
	}
	f.filer = filer
	f.token = "0123456789abcdef0123456789abcdef"
	if err := os.WriteFile(f.tokenFile(), []byte("trainer "+f.token+"\n"), 0o600); err != nil {
		return err
	}
	f.nodes[0].more = []string{
		"--token-file", filepath.Join(filer.folder, "tokens"), "--audit", filepath.Join(filer.folder, "audit.log"), "--announce", filer.folder,
		"--drain-timeout", hungDrain.String(),
	}
	return nil
}

// hangBeside lets all of that hang, and has a job end and another one begin: a line of the audit log is due then, and tokens are looked at.
func hangBeside(ctx context.Context, r *run, _ int) error {
	first, err := r.besideJob(ctx)
	if err != nil {
		return err
	}
	r.fleet.filer.hang("look", "open", "read", "readdir", "write", "fsync")
	first.kill()
	if _, err := r.besideJob(ctx); err != nil {
		return err
	}
	return r.fleet.filer.untilStuck(ctx)
}

// besideJob starts another job on the photographs that takes a batch a second, and returns when it has had one.
func (r *run) besideJob(ctx context.Context) (*trainer, error) {
	t, err := r.matrix.train(settings{Source: "photos", Nodes: r.fleet.addrs(), Token: r.fleet.tokenFile(), Batch: 1, Ranks: 1, Period: 1})
	if err != nil {
		return nil, err
	}
	r.fleet.beside = append(r.fleet.beside, t)
	return t, waitUntil(ctx, "no batch for", func() (bool, error) {
		lines, err := t.said()
		return len(lines) > 0, err
	})
}

// hungIndex puts the index of the first node on a filer.
func hungIndex(f *fleet) error {
	folder := filepath.Join(f.scratch, "filer")
	filer, err := mountFiler(f.scratch, folder+".index")
	if err != nil {
		return err
	}
	f.filer = filer
	filer.hang("open", "read", "readdir", "write", "fsync")
	f.nodes[0].more = []string{"--index", folder + ".index", "--read-timeout", "2s", "--drain-timeout", hungDrain.String()}
	return nil
}

// hungLists puts the lists of the first node on a filer.
func hungLists(f *fleet) error {
	folder := filepath.Join(f.scratch, "filer.lists")
	filer, err := mountFiler(f.scratch, folder)
	if err != nil {
		return err
	}
	f.filer = filer
	filer.hang("open", "read", "readdir", "write", "fsync")
	private := filepath.Join(f.scratch, "private") // where no list of before lies
	if err := os.Mkdir(private, 0o700); err != nil {
		return err
	}
	f.nodes[0].environment = []string{"XDG_RUNTIME_DIR=" + private}
	f.nodes[0].more = []string{
		"--cache-dir", filepath.Join(folder, "lists"), "--index", "off", "--read-timeout", "2s", "--drain-timeout", hungDrain.String(),
	}
	return nil
}

// hangHalf lets the reads of half of the other root's files hang, while a job is at it.
func hangHalf(ctx context.Context, r *run, turn int) error {
	r.fleet.filer.spareHalf()
	return hangRoot("read")(ctx, r, turn)
}

// nothingMore waits for what hangs from the start.
func nothingMore(ctx context.Context, r *run, _ int) error { return r.fleet.filer.untilStuck(ctx) }

// untilStuck returns when calls hang.
func (f *filer) untilStuck(ctx context.Context) error {
	return waitUntil(ctx, "nothing hangs after", func() (bool, error) { return f.stuck() > 0, nil })
}

// endsInTime ends the first node while its storage hangs: its socket is closed in time, its exit code is 1, and the process is gone, where it can
// be killed at once, else when its storage answers.
func endsInTime(ctx context.Context, r *run) error {
	n, filer := r.fleet.nodes[0], r.fleet.filer
	if filer.stuck() == 0 {
		return fmt.Errorf("nothing hangs any more")
	}
	n.mu.Lock()
	process, exited := n.process, n.exited
	n.mu.Unlock()
	began := time.Now()
	if err := n.signal(termination); err != nil {
		return err
	}
	for listens(n.socket()) {
		if time.Since(began) > hungDrain+endWithin {
			return fmt.Errorf("the node listens %s after SIGTERM", time.Since(began))
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	if !filer.lenient {
		if err := sleep(ctx, time.Until(began.Add(hungDrain+endWithin))); err != nil {
			return err
		}
		filer.answer()
	}
	select {
	case <-exited:
	case <-time.After(time.Until(began.Add(hungDrain + endWithin + time.Second))):
		return fmt.Errorf("the node runs %s after SIGTERM", time.Since(began))
	}
	r.matrix.say(fmt.Sprintf("it ended %.1f s after SIGTERM: %s", time.Since(began).Seconds(), process.ProcessState))
	if code := process.ProcessState.ExitCode(); code != 1 {
		return fmt.Errorf("exit code %d", code)
	}
	return nil
}

// listens reports whether somebody listens at a socket.
func listens(path string) bool {
	c, err := net.Dial("unix", path)
	if err == nil {
		shut(c)
	}
	return err == nil
}
