package admission_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/feedwater-io/feedwater/server/admission"
)

// What is read costs the same in whatever pieces it comes, but for what each piece costs by itself.
func TestCostOfFrames(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&b, nil)
	for id := range uint32(50) {
		if f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*id + 1, BlockFragment: make([]byte, 20*id)}) != nil || f.WriteContinuation(2*id+1, true, nil) != nil ||
			f.WriteData(2*id+1, false, make([]byte, 10*id)) != nil || f.WriteSettings() != nil {
			t.Fatal("not written")
		}
	}
	const calls, frames = 100, 100
	want := calls*80*time.Microsecond + frames*time.Microsecond + time.Duration(b.Len())*20*time.Nanosecond
	r := rand.New(rand.NewPCG(1, 1))
	for _, most := range []int{1, 2, 8, 10, 500, b.Len()} {
		var pieces [][]byte
		for rest := b.Bytes(); len(rest) > 0; {
			n := min(len(rest), 1+r.IntN(most))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if got := admission.CostOf(pieces) - time.Duration(len(pieces))*5*time.Microsecond; got != want {
			t.Errorf("in pieces of up to %d: %s, want %s", most, got, want)
		}
	}
}

// An address may begin all connections that it may have at once, and after that so many a second as its share of a core
// pays for.
func TestConnectionsPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := admission.NewHosts(admission.Options{HostConnections: 64, Connections: 128, HostShare: 0.05})
		burst := func(host string) (n int) {
			for hosts.Connect(host) {
				n++
			}
			return n
		}
		if n := burst("a"); n != 320 {
			t.Errorf("%d connections at once", n)
		}
		time.Sleep(time.Second)
		if n := burst("a"); n != 25 {
			t.Errorf("%d connections a second later", n)
		}
		if n := burst("b"); n != 320 {
			t.Errorf("%d connections of another address", n)
		}
	})
}

// Addresses that are gone are forgotten; those that have not paid are not.
func TestManyAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := admission.NewHosts(admission.Options{HostConnections: 64, Connections: 128, HostShare: 0.05})
		for i := range 20_000 {
			p.Connect(fmt.Sprint("host", i))
			time.Sleep(time.Millisecond)
		}
		if n := p.Known(); n > 2*4096 {
			t.Errorf("%d addresses are remembered", n)
		}
	})
}

// crowd is a listener to which somebody connects whenever it listens: every 1000th time "b", else "a".
type crowd struct {
	net.Listener
	came, closed int
}

// caller is a connection of the crowd's.
type caller struct {
	net.Conn
	addr  string
	crowd *crowd
}

func (c *caller) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.addr), Port: 1} }

func (c *caller) Close() error { c.crowd.closed++; return nil }

// Accept implements net.Listener.
func (c *crowd) Accept() (net.Conn, error) {
	c.came++
	if c.came%1000 == 0 {
		return &caller{addr: "10.0.0.2", crowd: c}, nil
	}
	return &caller{addr: "10.0.0.1", crowd: c}, nil
}

// Whoever connects as fast as the node listens is hung up on, at a pace that costs the node little; others come in
// between.
func TestFloodOfConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := admission.NewHosts(admission.Options{HostConnections: 64, Connections: 1000, HostShare: 0.05})
		for hosts.Connect("10.0.0.1") {
		}
		c := &crowd{}
		l := hosts.Listener(c)
		began := time.Now()
		taken := map[string]int{}
		for time.Since(began) < 10*time.Second {
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
			if taken[host]++; c.came > 1_000_000 {
				t.Fatal("a million connections take no time")
			}
			_ = conn.Close() // nobody has shaken hands on it yet
		}
		c.closed -= taken["10.0.0.1"] + taken["10.0.0.2"]
		most := int((0.01+0.03*time.Since(began).Seconds())/35e-6) + 1
		if c.closed > most || c.closed < most*9/10 {
			t.Errorf("%d are hung up on in 10 s, of at most %d", c.closed, most)
		}
		if taken["10.0.0.1"] > 501 || taken["10.0.0.2"] != c.came/1000 {
			t.Errorf("%v are taken of %d", taken, c.came)
		}
	})
}
