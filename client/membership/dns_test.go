package membership

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// zone is a resolver that a test fills.
type zone struct {
	mu   sync.Mutex
	ips  []string
	srv  []*net.SRV
	err  error
	asks []time.Time
}

func (z *zone) set(ips []string, srv []*net.SRV, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.ips, z.srv, z.err = ips, srv, err
}

func (z *zone) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asks = append(z.asks, time.Now())
	var ips []netip.Addr
	for _, text := range z.ips {
		ips = append(ips, netip.MustParseAddr(text))
	}
	return ips, z.err
}

func (z *zone) LookupSRV(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if service+proto != "" || name != "_feedwater._tcp.preproc" {
		return "", nil, errors.New("another question")
	}
	return "", z.srv, z.err
}

func TestDNS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := newDNS("dns:preproc:7070", "preproc:7070")
		if err != nil {
			t.Fatal(err)
		}
		z := &zone{ips: []string{"10.0.0.2", "fd00::2", "::ffff:10.0.0.1", "fd00::1", "10.0.0.2"}}
		d.resolver = z
		answers := watch(t, d)
		if a := next(t, answers, "10.0.0.1:7070 10.0.0.2:7070"); a.ServerName != "preproc" {
			t.Errorf("certificates are made out to %q", a.ServerName)
		}
		z.set([]string{"fd00::2", "fd00::1"}, nil, nil)
		next(t, answers, "[fd00::1]:7070 [fd00::2]:7070")
		z.set(nil, nil, &net.DNSError{Err: "server misbehaving", Name: "preproc", IsTemporary: true})
		next(t, answers, "cannot tell: lookup preproc: server misbehaving")
		z.set(nil, nil, &net.DNSError{Err: "no such host", Name: "preproc", IsNotFound: true})
		next(t, answers, " but lookup preproc: no such host")
		z.set([]string{"10.0.0.9"}, nil, nil)
		next(t, answers, "10.0.0.9:7070")
		time.Sleep(10 * time.Minute) // nothing new, so nobody is told
		synctest.Wait()
		z.mu.Lock()
		defer z.mu.Unlock()
		least, most := time.Hour, time.Duration(0)
		for i, at := range z.asks[1:] {
			gap := at.Sub(z.asks[i])
			least, most = min(least, gap), max(most, gap)
		}
		if least < 4*time.Second || most > 6*time.Second || most-least < time.Second {
			t.Errorf("%d questions %s to %s apart", len(z.asks), least, most)
		}
	})
}

func TestSRV(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := newSRV("dns+srv:_feedwater._tcp.preproc", "_feedwater._tcp.preproc")
		if err != nil {
			t.Fatal(err)
		}
		z := &zone{srv: []*net.SRV{{Target: "pod-1.preproc.", Port: 7070}, {Target: "pod-0.preproc.", Port: 7171, Priority: 5}}}
		d.resolver = z
		answers := watch(t, d)
		if a := next(t, answers, "pod-0.preproc:7171 pod-1.preproc:7070"); a.ServerName != "" {
			t.Errorf("certificates are made out to %q", a.ServerName)
		}
		z.set(nil, z.srv[:1], errors.New("one record is damaged"))
		next(t, answers, "pod-1.preproc:7070 but one record is damaged")
		z.set(nil, nil, errors.New("one record is damaged"))
		next(t, answers, "cannot tell: one record is damaged")
		z.set(nil, []*net.SRV{{Target: ".", Port: 7070}}, nil) // no such service
		next(t, answers, ` but ":7070" is no address of a node; write `+Spellings)
	})
}

// The resolver of the machine knows its own name.
func TestDNSOfThisMachine(t *testing.T) {
	d, err := newDNS("dns:localhost:7070", "localhost:7070")
	if err != nil {
		t.Fatal(err)
	}
	if a := d.lookUp(t.Context()); text(a) != "127.0.0.1:7070" && text(a) != "[::1]:7070" {
		t.Errorf("localhost is %s", text(a))
	}
}
