// Package membership finds out which nodes there are: those that a name in DNS stands for, that a file lists, that a
// Service of Kubernetes has. What it tells is a hint, which may be late, empty or wrong; what nodes answer is the
// truth, and package client goes and package client goes by that. It connects to no node.
//
// Goroutines: none but List's, one per source, which List.Run waits for. A Source works on the goroutine that called
// Watch; one that watches a file lets fsnotify have one more until Watch returns.
package membership

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Source knows which nodes there are.
type Source interface {
	// Watch calls tell with what the source knows, first as soon as it can, then whenever that changes, until ctx ends.
	// All calls come from the calling goroutine.
	Watch(ctx context.Context, tell func(Answer))
	// String is the source as it is spelled in lists of nodes.
	String() string
}

// Answer is what a source knows.
type Answer struct {
	// Nodes by address, sorted, each once. Nil: the source cannot tell now; empty, not nil: it says that there are
	// none.
	Nodes []string
	// ServerName is what these nodes' certificates are made out to; empty: the host of each address.
	ServerName string
	// Err is why Nodes is nil, or empty, or lacks some.
	Err error
}

// checkNodes leaves out what is no address of a node, and says so.
func (a *Answer) checkNodes() {
	a.Nodes = slices.DeleteFunc(a.Nodes, func(addr string) bool {
		err := CheckAddress(addr)
		if err != nil {
			a.Err = err
		}
		return err != nil
	})
}

// TargetError says what is wrong with the spelling of nodes.
type TargetError struct{ Target, Message string }

func (e *TargetError) Error() string { return fmt.Sprintf("%q %s", e.Target, e.Message) }

// CheckAddress says what is wrong with the address of one node: host:port, or unix:path. Errors are *TargetError.
func CheckAddress(addr string) error {
	if strings.HasPrefix(addr, "unix:") {
		return nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || !isPort(port) || strings.ContainsAny(host, "/ \t") {
		return &TargetError{addr, "is no address of a node; write " + Spellings}
	}
	return nil
}

func isPort(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 1 && n <= 65535
}

// changeNotifier hands on what is new.
type changeNotifier struct {
	tell func(Answer)
	told bool
	last Answer
}

func (t *changeNotifier) notifyChange(a Answer) {
	a.checkNodes()
	slices.Sort(a.Nodes)
	a.Nodes = slices.Compact(a.Nodes)
	if t.told && slices.Equal(a.Nodes, t.last.Nodes) && (a.Nodes == nil) == (t.last.Nodes == nil) && fmt.Sprint(a.Err) == fmt.Sprint(t.last.Err) {
		return
	}
	t.told, t.last = true, a
	t.tell(a)
}

// oneFamily leaves IPv6 out where there is IPv4: a machine that has both is one node.
func oneFamily(ips []netip.Addr) []netip.Addr {
	four := slices.DeleteFunc(slices.Clone(ips), func(ip netip.Addr) bool { return !ip.Unmap().Is4() })
	if len(four) > 0 {
		return four
	}
	return ips
}

// joinPort makes addresses of one port.
func joinPort(ips []netip.Addr, port string) []string {
	all := make([]string, len(ips))
	for i, ip := range ips {
		all[i] = net.JoinHostPort(ip.Unmap().String(), port)
	}
	return all
}

// pauseAround waits for about d, so that many who began together do not ask together, or until ctx ends.
func pauseAround(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(addJitter(d)):
	case <-ctx.Done():
	}
}

// addJitter is d ± 20 %.
func addJitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// Spellings of nodes, for errors.
const Spellings = "host:port (like cpu-1:7070) or unix:path for one node; dns:name:port, dns+srv:name, file:path or k8s:namespace/service:port for all that it stands for"
