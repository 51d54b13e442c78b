package membership

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

const (
	lookEvery  = 5 * time.Second
	lookWithin = 10 * time.Second
)

// resolver is what is used of a net.Resolver.
type resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// dns asks for a name again and again. Resolvers that ask only when a connection breaks never see nodes that are added.
type dns struct {
	target, name string
	port         string // empty: SRV records have it
	resolver     resolver
}

func newDNS(target, rest string) (*dns, error) {
	name, port, err := net.SplitHostPort(rest)
	if err != nil || name == "" || !isPort(port) || strings.Contains(name, "/") {
		return nil, &TargetError{target, "names no machines; write dns:name:port, like dns:preproc.example.org:7070"}
	}
	return &dns{target, name, port, net.DefaultResolver}, nil
}

func newSRV(target, name string) (*dns, error) {
	if name == "" || strings.ContainsAny(name, ":/ ") {
		return nil, &TargetError{target, "names no SRV record; write dns+srv:name, like dns+srv:_feedwater._tcp.example.org: ports stand in the records"}
	}
	return &dns{target: target, name: name, resolver: net.DefaultResolver}, nil
}

// String implements Source.
func (d *dns) String() string { return d.target }

// Watch implements Source.
func (d *dns) Watch(ctx context.Context, tell func(Answer)) {
	t := &changeNotifier{tell: tell}
	for {
		a := d.lookUp(ctx)
		if ctx.Err() != nil {
			return
		}
		t.notifyChange(a)
		pauseAround(ctx, lookEvery)
	}
}

func (d *dns) lookUp(ctx context.Context) Answer {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	a := Answer{Nodes: []string{}}
	if d.port == "" {
		a.Nodes, a.Err = d.srvTargets(ctx)
	} else {
		ips, err := d.resolver.LookupNetIP(ctx, "ip", d.name)
		a.Nodes, a.Err, a.ServerName = joinPort(oneFamily(ips), d.port), err, d.name
	}
	var missing *net.DNSError
	nobody := errors.As(a.Err, &missing) && missing.IsNotFound
	if len(a.Nodes) == 0 && a.Err != nil && !nobody {
		a.Nodes = nil
	}
	return a
}

// srvTargets are the targets of SRV records, of all priorities. They stay names: those of pods outlive their addresses,
// and stand in certificates.
func (d *dns) srvTargets(ctx context.Context) ([]string, error) {
	_, found, err := d.resolver.LookupSRV(ctx, "", "", d.name)
	nodes := make([]string, len(found))
	for i, r := range found {
		nodes[i] = net.JoinHostPort(strings.TrimSuffix(r.Target, "."), strconv.Itoa(int(r.Port)))
	}
	return nodes, err
}
