// Package top is `feedwater top`: it watches agents of this machine and nodes anywhere, and shows in a terminal what
// each job wastes for data, why, and what to do. What is shown is decided by package watch; this one fetches, lays out
// and takes keys.
//
// Goroutines: a Poller has one that looks for agents and one for each process that it watches; Close waits for them.
package top

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch"
)

// Options of a Poller.
type Options struct {
	// Hosts lists nodes to watch now, host:port or unix:path; nil: none.
	Hosts func() []string
	// Agents lists the sockets of this machine's agents; nil: none are looked for.
	Agents func() []string
	// Interval between two answers.
	Interval time.Duration
	// Dial gives what a connection to a host needs; nil: plaintext.
	Dial func(host string) ([]grpc.DialOption, error)
}

// Poller watches processes.
type Poller struct {
	options Options
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	targets map[string]*target
}

// target is one process that is watched.
type target struct {
	host  bool // asked for by name, not found
	state *pb.WatchResponse
	err   error
	news  int       // answers so far
	heard time.Time // the latest of them
	stop  context.CancelFunc
}

// NewPoller returns a poller that does nothing until Start.
func NewPoller(o Options) *Poller {
	p := &Poller{options: o, targets: map[string]*target{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// lookEvery is how often hosts and agents are looked for.
const lookEvery = 2 * time.Second

// Start begins to watch. Hosts, and agents that are there already, are known when it returns.
func (p *Poller) Start() {
	p.listHosts()
	p.running.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.listHosts()
			case <-p.ctx.Done():
				return
			}
		}
	})
}

// Close ends it.
func (p *Poller) Close() {
	p.cancel()
	p.running.Wait()
}

func (p *Poller) listHosts() {
	if p.options.Hosts != nil {
		p.setHosts(p.options.Hosts())
	}
	if p.options.Agents == nil {
		return
	}
	for _, path := range p.options.Agents() {
		p.addTarget("unix:"+path, false)
	}
}

func (p *Poller) addTarget(addr string, host bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.targets[addr] != nil || p.ctx.Err() != nil {
		return
	}
	ctx, stop := context.WithCancel(p.ctx)
	t := &target{host: host, stop: stop}
	p.targets[addr] = t
	p.running.Go(func() {
		defer stop()
		p.watchTarget(ctx, addr, t)
	})
}

// setHosts replaces the hosts that are watched.
func (p *Poller) setHosts(hosts []string) {
	p.mu.Lock()
	for addr, t := range p.targets {
		if t.host && !slices.Contains(hosts, addr) {
			t.stop()
			delete(p.targets, addr)
		}
	}
	p.mu.Unlock()
	for _, h := range hosts {
		p.addTarget(h, true)
	}
}

// watchTarget watches one process: a host until ctx ends, an agent until it is gone.
func (p *Poller) watchTarget(ctx context.Context, addr string, t *target) {
	for ctx.Err() == nil {
		err := p.receiveStates(ctx, addr, t)
		p.mu.Lock()
		t.err, t.state = err, nil
		if !t.host {
			delete(p.targets, addr)
		}
		p.mu.Unlock()
		if !t.host {
			return
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

func (p *Poller) receiveStates(ctx context.Context, addr string, t *target) error {
	options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy()}
	if p.options.Dial != nil && t.host {
		var err error
		if options, err = p.options.Dial(addr); err != nil {
			return err
		}
	}
	name := addr
	if !strings.HasPrefix(addr, "unix:") {
		name = "passthrough:///" + addr
	}
	conn, err := grpc.NewClient(name, options...)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return watch.Follow(ctx, conn, p.options.Interval, func(state *pb.WatchResponse) {
		p.mu.Lock()
		defer p.mu.Unlock()
		t.state, t.err, t.heard = state, nil, time.Now()
		t.news++
	})
}

// Overview is what is known now.
func (p *Poller) Overview(now time.Time) *watch.Overview {
	p.mu.Lock()
	var all []watch.ProcessState
	for addr, t := range p.targets {
		if t.state != nil {
			state, _ := proto.Clone(t.state).(*pb.WatchResponse) // Merge takes it over
			all = append(all, watch.ProcessState{Addr: addr, State: state})
		} else if t.err != nil {
			all = append(all, watch.ProcessState{Addr: addr, Error: t.silenceReason(now), Heard: !t.heard.IsZero()})
		}
	}
	p.mu.Unlock()
	slices.SortFunc(all, func(a, b watch.ProcessState) int { return cmp.Compare(a.Addr, b.Addr) })
	return watch.Merge(all, now)
}

// silenceReason tells people why a target that failed tells nothing, and for how long it has not.
func (t *target) silenceReason(now time.Time) string {
	why := watch.Plain(status.Convert(t.err).Message())
	if t.heard.IsZero() {
		return why
	}
	return fmt.Sprintf("silent for %s: %s", now.Sub(t.heard).Round(time.Second), why)
}

// HostsTell reports whether any host tells its state now.
func (p *Poller) HostsTell() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.targets {
		if t.host && t.state != nil {
			return true
		}
	}
	return false
}

// AwaitRates waits until each process has told so much that rates are known, or cannot be reached; for no longer than
// limit.
func (p *Poller) AwaitRates(ctx context.Context, limit time.Duration) {
	deadline := time.After(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !p.hasRates() {
		select {
		case <-tick.C:
		case <-deadline:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (p *Poller) hasRates() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.targets {
		if t.err == nil && t.news < 2 {
			return false
		}
	}
	return true
}
