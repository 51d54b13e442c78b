// Package agent is the process beside a trainer rank: it takes wants from the Python package over a socket pair and
// puts batches into the trainer's shared memory. docs/agent.md has the protocol and says who owns what. It makes no
// pixels and keeps no position: what is wanted goes to a client.Fleet, what comes back goes to the slot that the want
// lent.
//
// Goroutines: one that reads the control socket, one that waits for the trainer's end, and for each Loader one that
// reads its socket, one that writes it, and one for each call in progress.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/agent/process"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

// Options of an agent.
type Options struct {
	// Control is the trainer's control socket, a SOCK_SEQPACKET.
	Control *os.File
	// Trainer is a pidfd of the trainer; nil: the control socket alone tells its end.
	Trainer *os.File
	// TrainerPID is the trainer's process id. Sockets may close although the trainer lives on and still looks at
	// batches, so this tells whether the slots' memory may be taken away. 0: only Trainer tells.
	TrainerPID int
	// Connect makes the fleet that serves a Loader. It does no more than client.New: nothing is opened yet.
	Connect func(context.Context, Plan) (*client.Fleet, error)
	// List tells what a folder of this machine holds; nil: the agent is not asked.
	List func(ctx context.Context, folder string) (Listing, error)
	Log  *slog.Logger
	// Version is compared with that of the Python package, Build tells one build of it from another for people.
	Version, Build string
	// Cores that this process may use are told to watchers, and what GPUs says, if it is set.
	Cores float64
	GPUs  func() []*pb.GpuStatus
	// Warnings, if set, are told to the program of the first Loader that connects, or gets a batch after they came up.
	Warnings *Warnings
}

// Plan is what a Loader asks for.
type Plan struct {
	// Text of the plan, JSON.
	Text []byte
	// Table is the list of files that the plan names; nil: it names none.
	Table *client.Table
	// Nodes by address; none: this process's own pipeline.
	Nodes []string
	// Insecure allows connections to other machines that are not encrypted.
	Insecure bool
	// TLS, if set, are the files of encrypted connections; TokenFile, if set, holds what is shown to nodes.
	TLS       *node.TLSFiles
	TokenFile string
	// Local is the folder of this machine that holds the data, if there are nodes and it is here too: to match by
	// fingerprint.
	Local string
	Job   string
	// Numerics and Fingerprint to pin, of a job that goes on; empty: what client.Options says.
	Numerics, Fingerprint string
	// Revisions to pin, likewise; nil: those of most nodes.
	Revisions *pb.Revisions
	// Stores to pin, likewise: versions by their stores.
	Stores map[string]string
	// Workers of this process's own pipeline; 0: one per core that is the rank's, or with nodes no pipeline. With nodes
	// it needs Local.
	Workers int
	// StartTimeout and Timeout bound the waits for the first and for further batches; negative: for ever.
	StartTimeout, Timeout time.Duration
	// Log goes to the trainer's log.
	Log *slog.Logger
}

// Listing is what a folder of pictures holds, in order.
type Listing struct {
	Fingerprint string
	// Counts of the samples of each class, in label order.
	Counts []int
	// Keys of the samples, each with a zero byte behind it.
	Keys []byte
}

// Agent serves the Loaders of one trainer.
type Agent struct {
	options  Options
	orphaned atomic.Bool // the trainer's pidfd said that it is gone
	registry pulse.Registry
	host     string
	source   *watch.Source

	mu      sync.Mutex
	loaders map[*loader]struct{}
	running sync.WaitGroup
}

// New returns an agent that is not running yet.
func New(o Options) *Agent {
	host, _ := os.Hostname() // for people; they live without
	a := &Agent{options: o, host: host, loaders: map[*loader]struct{}{}}
	a.source = newSource(a)
	return a
}

// Run serves until the control socket closes, the trainer ends or ctx does, and returns when everything it started has
// ended. If the trainer is gone the slots' memory is given back then.
func (a *Agent) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	control, err := packetConn(a.options.Control)
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = control.Close() })
	defer stop()
	var watch sync.WaitGroup
	if a.options.Trainer != nil {
		wake, done, err := process.NewWaker()
		if err != nil {
			return err
		}
		defer watch.Wait()
		defer done()
		watch.Go(func() {
			if process.AwaitExit(a.options.Trainer, wake) {
				a.discardSlots()
				end()
			}
		})
	}
	err = a.acceptLoaders(ctx, control)
	end()
	_ = control.Close()
	a.running.Wait()
	return err
}

// acceptLoaders takes Loaders' sockets from the control socket until it closes.
func (a *Agent) acceptLoaders(ctx context.Context, control *net.UnixConn) error {
	packet := make([]byte, 256)
	for {
		kind, files, err := readPacket(control, packet)
		if err != nil {
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return nil //nolint:nilerr // the trainer is gone or wants no agent, which is how an agent ends
			}
			return fmt.Errorf("control socket: %w", err)
		}
		if len(kind) != 1 || kind[0] != kindLoader || len(files) != 1 {
			closeAll(files)
			return fmt.Errorf("control socket: a packet of %d bytes with %d handles", len(kind), len(files))
		}
		conn, err := packetConn(files[0])
		if err != nil {
			return fmt.Errorf("loader socket: %w", err)
		}
		a.serveLoader(ctx, conn)
	}
}

func (a *Agent) serveLoader(ctx context.Context, conn *net.UnixConn) {
	l := newLoader(a, conn)
	a.mu.Lock()
	a.loaders[l] = struct{}{}
	a.mu.Unlock()
	a.running.Go(func() {
		defer func() {
			a.mu.Lock()
			delete(a.loaders, l)
			a.mu.Unlock()
		}()
		l.serveSocket(ctx)
	})
}

// trainerGone reports whether the trainer has ended or is on its way out. A process that dies closes its handles one
// after the other, so a Loader's socket may end before the pidfd says anything.
func (a *Agent) trainerGone() bool {
	return a.orphaned.Load() || process.IsExiting(a.options.TrainerPID)
}

// discardSlots gives all slots' memory back: the trainer is gone, and forked children of it would keep the memory.
func (a *Agent) discardSlots() {
	a.orphaned.Store(true)
	a.mu.Lock()
	defer a.mu.Unlock()
	for l := range a.loaders {
		l.discardSlots()
	}
}

// packetConn makes a connection of a socket's file and closes the file.
func packetConn(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, fmt.Errorf("a %T, not a unix socket", c)
	}
	return u, nil
}

// readPacket reads one packet and the handles that came with it. The other end's close is io.EOF.
func readPacket(c *net.UnixConn, buf []byte) ([]byte, []*os.File, error) {
	control := make([]byte, unix.CmsgSpace(4*4))
	n, k, flags, _, err := c.ReadMsgUnix(buf, control)
	if err != nil {
		return nil, nil, err
	}
	files, err := filesIn(control[:k])
	switch {
	case err != nil:
		return nil, nil, err
	case n == 0 && len(files) == 0:
		return nil, nil, io.EOF
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
		closeAll(files)
		return nil, nil, fmt.Errorf("a packet of over %d bytes", len(buf))
	}
	return buf[:n], files, nil
}

func filesIn(control []byte) ([]*os.File, error) {
	if len(control) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			closeAll(files)
			return nil, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "from the trainer"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
