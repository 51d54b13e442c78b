// Package gpus tells how this machine's GPUs are, as feedwater-nvml reads them. docs/nvml.md. What is wrong with the
// program, or with the driver, makes them unknown, which is all.
package gpus

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

// Readings are those of feedwater-nvml, which runs while somebody asks, once per user and machine. The methods may be
// called from many goroutines at once.
type Readings struct {
	log     *slog.Logger
	host    string
	folders func() []string
	wake    chan struct{}

	mu     sync.Mutex
	asked  time.Time
	told   time.Time
	latest []*pb.GpuStatus
}

const (
	askedFor  = 15 * time.Second // after the last question the program is ended
	toldFor   = 5 * time.Second  // what it said is true
	retryNVML = 30 * time.Second
)

// New returns readings of nothing yet. Folders are this user's alone; in the first that can be written to lies the lock
// of whoever reads.
func New(log *slog.Logger, folders func() []string) *Readings {
	host, _ := os.Hostname()
	return &Readings{log: log, folders: folders, host: pulse.CleanName(host), wake: make(chan struct{}, 1)}
}

// LatestStatus is what is known now. It never waits.
func (g *Readings) LatestStatus() []*pb.GpuStatus {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = time.Now()
	select {
	case g.wake <- struct{}{}:
	default:
	}
	if time.Since(g.told) > toldFor {
		return nil
	}
	return g.latest
}

func (g *Readings) isWanted() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Since(g.asked) < askedFor
}

// RunWhileWanted runs the program while somebody asks, until ctx ends.
func (g *Readings) RunWhileWanted(ctx context.Context) {
	program := findNVML()
	for program != "" {
		select {
		case <-g.wake:
		case <-ctx.Done():
			return
		}
		if g.isWanted() {
			g.readProgram(ctx, program)
		}
		select {
		case <-time.After(retryNVML):
		case <-ctx.Done():
			return
		}
	}
}

// findNVML is the program beside this one, or the one that FEEDWATER_NVML names; nothing where there is no driver to
// ask.
func findNVML() string {
	if named := os.Getenv("FEEDWATER_NVML"); named != "" {
		return named
	}
	if _, err := os.Stat("/dev/nvidiactl"); err != nil {
		return ""
	}
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	beside := filepath.Join(filepath.Dir(self), "feedwater-nvml")
	if _, err := os.Stat(beside); err != nil {
		return ""
	}
	return beside
}

// readProgram reads the program's lines until it ends, nobody asks any more, or ctx ends.
func (g *Readings) readProgram(ctx context.Context, program string) {
	unlock, ok := g.lockReading()
	if !ok {
		return // another agent of this user's tells them
	}
	defer unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	command := exec.CommandContext(ctx, program, "--interval", "1s")
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		g.log.Warn("GPU readings are unknown", "error", err)
		return
	}
	defer context.AfterFunc(ctx, func() { _ = out.Close() })() // children of the program may hold the other end
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && g.isWanted() {
		g.parseLine(lines.Bytes())
	}
	cancel()
	ended := make(chan struct{})
	go func() { // waited for below, unless the driver hangs: then it ends with this process
		defer close(ended)
		_ = command.Wait() // killed, or ended by itself: unknown either way
	}()
	select {
	case <-ended:
	case <-time.After(2 * time.Second):
	}
}

// lockReading holds a file that one process per user holds at a time; the kernel lets it go with the process.
func (g *Readings) lockReading() (unlock func(), ok bool) {
	for _, folder := range g.folders() {
		f, err := os.OpenFile(filepath.Join(folder, "nvml.lock"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			_ = f.Close()
			return nil, false
		}
		return func() { _ = f.Close() }, true
	}
	return nil, false
}

// nvmlLine is what docs/nvml.md says, as far as it is shown.
type nvmlLine struct {
	GPUs []struct {
		Index       uint32            `json:"index"`
		UUID        *string           `json:"uuid"`
		Name        *string           `json:"name"`
		Lost        bool              `json:"lost"`
		Utilisation *float64          `json:"utilisation"`
		SMActivity  *float64          `json:"sm_activity"`
		MemoryUsed  *uint64           `json:"memory_used_bytes"`
		MemoryTotal *uint64           `json:"memory_total_bytes"`
		Throttles   []string          `json:"throttle_reasons"`
		Unknown     map[string]string `json:"unknown"`
		Processes   []struct {
			PID    uint32  `json:"pid"`
			Memory *uint64 `json:"memory_used_bytes"`
		} `json:"processes"`
	} `json:"gpus"`
}

func (g *Readings) parseLine(text []byte) {
	var line nvmlLine
	if json.Unmarshal(text, &line) != nil {
		return
	}
	var all []*pb.GpuStatus
	for _, r := range line.GPUs {
		s := &pb.GpuStatus{Host: g.host, Index: r.Index, Busy: r.Utilisation, MemoryUsedBytes: r.MemoryUsed, MemoryTotalBytes: r.MemoryTotal}
		if r.Name != nil {
			s.Name = pulse.CleanName(*r.Name)
		}
		if r.UUID != nil {
			s.Uuid = pulse.CleanName(*r.UUID)
		}
		if r.SMActivity != nil { // says more: a kernel may be small
			s.Busy = r.SMActivity
		}
		if s.Busy == nil {
			s.Unknown = pulse.CleanName(r.Unknown["utilisation"])
		}
		if r.Lost {
			s.Unknown = "the GPU is lost"
		}
		for _, t := range r.Throttles {
			if t != "gpu_idle" && t != "applications_clocks_setting" { // no fault
				s.Throttles = append(s.Throttles, pulse.CleanName(t))
			}
		}
		for _, p := range r.Processes {
			s.Processes = append(s.Processes, &pb.GpuProcess{Pid: p.PID, MemoryBytes: p.Memory})
		}
		all = append(all, s)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.latest, g.told = all, time.Now()
}
