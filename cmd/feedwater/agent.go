package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/feedwater-io/feedwater/client/agent"
	"github.com/feedwater-io/feedwater/span"
)

// agentEnv names the handle of the trainer's pidfd; docs/agent.md.
const (
	agentPidfdEnv  = "FEEDWATER_AGENT_PIDFD"
	agentControlFD = 3
)

func newAgent() *cobra.Command {
	return &cobra.Command{
		Use:    "agent",
		Short:  "The process beside a trainer; the Python package starts it",
		Hidden: true,
		Args:   noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return runAgent(c.Context())
		},
	}
}

func runAgent(ctx context.Context) error {
	if _, err := unix.GetsockoptInt(agentControlFD, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return usageError{errors.New("the agent is started by feedwater.Loader, never by hand: its socket, handle 3, is not there")}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	preferToBeKilled()
	trainer, err := trainerHandle()
	if err != nil {
		return err
	}
	closeInherited(trainer)
	indexes, err := indexFromEnvironment()
	if err != nil {
		return usageError{err}
	}
	c := newCores()
	ctx, done := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { c.watch(ctx) })
	gpus := newGPUs(log)
	watcher.Go(func() { gpus.watch(ctx) })
	defer watcher.Wait()
	defer done()
	spans := span.Open(span.Options{Service: "feedwater-agent", Version: version, Log: log})
	defer spans.Close()
	local := &localPipelines{log: log, cores: c, index: indexes.index("", log, nil), tracer: spans.Tracer()}
	defer local.close()
	a := agent.New(agent.Options{
		Control:    os.NewFile(agentControlFD, "control"),
		Trainer:    trainer,
		TrainerPID: os.Getppid(), // it starts its agent itself
		Connect:    connector(local),
		List:       listing,
		Log:        log,
		Version:    version,
		Cores:      float64(c.all),
		GPUs:       gpus.read,
	})
	stop, err := serveWatchers(ctx, a.Source())
	if err != nil {
		log.Warn("feedwater top will not find this agent", "error", err)
	}
	defer stop()
	return a.Run(ctx)
}

// trainerHandle is the pidfd that the trainer handed down, nil if it said that there is none.
func trainerHandle() (*os.File, error) {
	text := os.Getenv(agentPidfdEnv)
	if text == "" {
		return nil, nil
	}
	fd, err := strconv.Atoi(text)
	if err != nil || fd <= agentControlFD {
		return nil, fmt.Errorf("%s=%q is no handle", agentPidfdEnv, text)
	}
	return os.NewFile(uintptr(fd), "trainer"), nil
}

// closeInherited closes the handles that the trainer's libraries left open for its children, as far as the trainer could not have them closed.
// They are those that an exec would hand on: whatever this process opens is closed on exec.
func closeInherited(trainer *os.File) {
	first := agentControlFD + 1
	if trainer != nil {
		first = int(trainer.Fd()) + 1
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // no /proc: they stay, and do no more harm than keep files open
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < first {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}

// preferToBeKilled asks the kernel to end this process, not the trainer, if memory runs out: an agent can be started again.
func preferToBeKilled() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("900"), 0) // not allowed everywhere, and then not needed for being right
}
