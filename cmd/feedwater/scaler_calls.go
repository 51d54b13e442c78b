package main

import (
	"context"
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

// scalers are those that a name stands for. All are told that a trainer waits: whoever asks for the number asks any one
// of them, and each knows what it has heard itself.
type scalers struct {
	host, port string
	options    node.DialOptions
	resolve    func(ctx context.Context, host string) ([]string, error)

	mu   sync.Mutex
	open map[string]node.Node // by address
}

// scalerOf is the scaler that a Loader with nodes asks for the first one; nil: none is named.
func scalerOf(p agent.Plan, o node.DialOptions) (client.Scaler, error) {
	addr := os.Getenv(scalerEnv)
	if addr == "" || len(p.Nodes) == 0 {
		return nil, nil
	}
	n, err := node.Dial(addr, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", scalerEnv, err)
	}
	// An address, or unix:, stands for one.
	if host, port, err := net.SplitHostPort(addr); err == nil && net.ParseIP(host) == nil {
		return &scalers{
			host: host, port: port, options: o.WithServerName(host), resolve: net.DefaultResolver.LookupHost, open: map[string]node.Node{},
		}, nil
	}
	return n, nil
}

// Open tells each scaler that the name stands for now. The answer is one of theirs.
func (s *scalers) Open(ctx context.Context, r *pb.OpenRequest) (*pb.OpenResponse, error) {
	hosts, err := s.resolve(ctx, s.host)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(hosts[:min(len(hosts), mostScalers)])
	var calls sync.WaitGroup
	answers := make(chan error, len(s.open))
	for _, n := range s.open {
		calls.Go(func() {
			_, err := n.Open(ctx, r)
			answers <- err
		})
	}
	calls.Wait()
	close(answers)
	return nil, <-answers
}

// keep has a connection to each of these hosts, and no other.
func (s *scalers) keep(hosts []string) {
	known := map[string]bool{}
	for _, host := range hosts {
		addr := net.JoinHostPort(host, s.port)
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
