package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/agent"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// mostScalers are asked; more addresses of a name are none of ours.
const mostScalers = 16

// scalers are those that an address stands for. All are told that a trainer waits: whoever asks for the number asks any
// one of them, and each knows what it has heard itself.
type scalers struct {
	name    string // as it was given
	options node.DialOptions
	list    func(ctx context.Context) ([]string, error) // their addresses

	mu   sync.Mutex
	open map[string]node.Node // by address
}

// scalerOf is the scaler that a Loader with nodes asks for the first one; nil: none is named.
func scalerOf(p agent.Plan, o node.DialOptions) (client.Scaler, error) {
	addr := os.Getenv(scalerEnv)
	if addr == "" || len(p.Nodes) == 0 {
		return nil, nil
	}
	if _, err := node.Dial(addr, o); err != nil { // nothing is sent yet
		return nil, fmt.Errorf("%s: %w", scalerEnv, err)
	}
	s := &scalers{name: addr, options: o, open: map[string]node.Node{}}
	host, port, named := splitName(addr)
	if !named {
		s.list = func(context.Context) ([]string, error) { return []string{addr}, nil }
		return s, nil
	}
	s.options = o.WithServerName(host)
	s.list = func(ctx context.Context) ([]string, error) {
		hosts, err := net.DefaultResolver.LookupHost(ctx, host)
		for i := range hosts {
			hosts[i] = net.JoinHostPort(hosts[i], port)
		}
		return hosts, err
	}
	return s, nil
}

// splitName is the name and the port of an address that has a name; one of numbers, and unix:, stands for itself alone.
func splitName(addr string) (name, port string, ok bool) {
	name, port, err := net.SplitHostPort(addr)
	return name, port, err == nil && net.ParseIP(name) == nil
}

// Tell tells each scaler that the address stands for now. It fails if none has heard.
func (s *scalers) Tell(ctx context.Context, r *pb.OpenRequest) error {
	err := s.tellAll(ctx, r)
	if err != nil {
		return fmt.Errorf("%s=%s: %w", scalerEnv, s.name, err)
	}
	return nil
}

func (s *scalers) tellAll(ctx context.Context, r *pb.OpenRequest) error {
	addrs, err := s.list(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(addrs[:min(len(addrs), mostScalers)])
	var calls sync.WaitGroup
	answers := make(chan error, len(s.open))
	for _, n := range s.open {
		calls.Go(func() { answers <- node.TellScaler(ctx, n, r) })
	}
	calls.Wait()
	close(answers)
	err = errors.New("it has no address")
	for answer := range answers {
		if answer == nil {
			return nil
		}
		err = answer
	}
	return err
}

// keep has a connection to each of these addresses, and no other.
func (s *scalers) keep(addrs []string) {
	known := map[string]bool{}
	for _, addr := range addrs {
		known[addr] = true
		if s.open[addr] != nil {
			continue
		}
		if n, err := node.Dial(addr, s.options); err == nil {
			s.open[addr] = n
		}
	}
	for _, addr := range slices.Collect(maps.Keys(s.open)) {
		if !known[addr] {
			_ = s.open[addr].Close()
			delete(s.open, addr)
		}
	}
}

// Close gives up the connections.
func (s *scalers) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(nil)
	return nil
}
