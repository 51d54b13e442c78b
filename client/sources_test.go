package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/client/membership"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// script is a source that tells what a test says.
type script struct{ answers chan membership.Answer }

func newScript() *script { return &script{make(chan membership.Answer)} }

// sourced is a fleet of the nodes named and those that the source names.
func (c *cluster) sourced(s membership.Source, nodes ...string) *client.Fleet {
	c.t.Helper()
	o := c.options(nodes...)
	o.Sources = []membership.Source{s}
	f, err := client.New(o)
	if err != nil {
		c.t.Fatal(err)
	}
	return f
}

func (s *script) String() string { return "script" }

func (s *script) Watch(ctx context.Context, tell func(membership.Answer)) {
	for {
		select {
		case a := <-s.answers:
			tell(a)
		case <-ctx.Done():
			return
		}
	}
}

// says tells of nodes, and gives the fleet time to take it in.
func (s *script) says(nodes ...string) {
	s.answers <- membership.Answer{Nodes: append([]string{}, nodes...)}
	time.Sleep(time.Second)
}

func (s *script) fails(message string) {
	s.answers <- membership.Answer{Err: errors.New(message)}
	time.Sleep(time.Second)
}

// follow runs a test in virtual time with a fleet that has a script as its only source, and nodes a, b and c.
func follow(t *testing.T, test func(t *testing.T, c *cluster, f *client.Fleet, s *script)) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		for _, addr := range []string{"a", "b", "c"} {
			c.start(addr, slowly(10*time.Millisecond), server.Options{})
		}
		s := newScript()
		f := c.sourced(s)
		opened := make(chan error, 1)
		go func() {
			_, err := f.Open(t.Context())
			opened <- err
		}()
		s.says("a", "b")
		if err := <-opened; err != nil {
			t.Fatal(err)
		}
		test(t, c, f, s)
		f.Close()
	})
}

// members are the fleet's nodes that are in a state; "": all.
func members(f *client.Fleet, state client.NodeState) string {
	var addrs []string
	for _, s := range f.Status() {
		if state == "" || s.State == state {
			addrs = append(addrs, s.Addr)
		}
	}
	slices.Sort(addrs)
	return strings.Join(addrs, " ")
}

func mustMake(t *testing.T, f *client.Fleet, batches int) {
	t.Helper()
	for i := range batches {
		if r := ask(f, rangeOf(0, uint64(i)*8, 8), room); r.Err != nil {
			t.Fatalf("batch %d: %v", i, r.Err)
		}
	}
}

func expect(t *testing.T, f *client.Fleet, state client.NodeState, want string) {
	t.Helper()
	time.Sleep(time.Second)
	if got := members(f, state); got != want {
		t.Errorf("%s nodes are %q, not %q", state, got, want)
	}
}

func TestNodesOfASourceComeAndGo(t *testing.T) {
	follow(t, func(t *testing.T, c *cluster, f *client.Fleet, s *script) {
		expect(t, f, client.Ready, "a b")
		s.says("a", "b", "c")
		expect(t, f, client.Ready, "a b c")
		s.says("b", "c")
		expect(t, f, client.Ready, "a b c") // a answers, whatever the list says
		c.nodes["a"].kill()
		expect(t, f, "", "b c")
		mustMake(t, f, 5)
		c.nodes["b"].kill()
		expect(t, f, client.Down, "b") // listed: it is tried again
	})
}

// A source that falls silent, fails, says that there is nobody, or names strangers takes no node away that answers.
func TestSourceThatErrs(t *testing.T) {
	follow(t, func(t *testing.T, c *cluster, f *client.Fleet, s *script) {
		expect(t, f, client.Ready, "a b")
		s.says()
		expect(t, f, "", "a b")
		s.fails("SERVFAIL")
		expect(t, f, "", "a b")
		s.says("stranger", "hole")
		expect(t, f, client.Ready, "a b")
		mustMake(t, f, 5)
		for _, addr := range []string{"a", "b"} { // all that worked are restarted, and the list still lacks them
			c.nodes[addr].kill()
		}
		expect(t, f, client.Down, "a b stranger")
		c.start("b", &servertest.Engine{}, server.Options{})
		time.Sleep(10 * time.Second)
		mustMake(t, f, 5)
		expect(t, f, "", "b hole stranger") // one works again, so the other is gone
	})
}

// A node that is gone without a word, connection open, goes too.
func TestSilentNodeThatIsNotListed(t *testing.T) {
	follow(t, func(t *testing.T, c *cluster, f *client.Fleet, s *script) {
		expect(t, f, client.Ready, "a b")
		c.nodes["a"].freeze(true)
		s.says("b")
		mustMake(t, f, 20)
		expect(t, f, "", "b")
	})
}

// A list that flaps costs nothing: every want has its batch, and no node is connected twice.
func TestSourceThatFlaps(t *testing.T) {
	follow(t, func(t *testing.T, c *cluster, f *client.Fleet, s *script) {
		for i := range 50 {
			switch i % 4 {
			case 0:
				s.says("a")
			case 1:
				s.says()
			case 2:
				s.says("c", "b")
			case 3:
				s.fails("timeout")
			}
			mustMake(t, f, 2)
		}
		for _, addr := range []string{"a", "b", "c"} {
			if n := c.nodes[addr].dials; n != 1 {
				t.Errorf("%s was dialled %d times", addr, n)
			}
		}
	})
}

// Nodes of other numerics and none else: Open fails and names each, once all sources have answered.
func TestSourceOfRefusingNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		for _, addr := range []string{"a", "b"} {
			c.start(addr, &servertest.Engine{Digest: "other"}, server.Options{})
		}
		first, second := newScript(), newScript()
		o := c.options()
		o.Sources, o.Numerics = []membership.Source{first, second}, "mine"
		f, err := client.New(o)
		if err != nil {
			t.Fatal(err)
		}
		opened := make(chan error, 1)
		go func() {
			_, err := f.Open(t.Context())
			opened <- err
		}()
		first.says("a")
		select {
		case err := <-opened:
			t.Errorf("before the second source has answered: %v", err)
		default:
		}
		second.says("b")
		err = <-opened
		var numerics *node.NumericsError
		if !errors.As(err, &numerics) || !strings.Contains(err.Error(), "a: left out") || !strings.Contains(err.Error(), "b: left out") {
			t.Errorf("error %v", err)
		}
		f.Close()
	})
}

func TestSourceThatCannotTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		s := newScript()
		o := c.options()
		o.Sources, o.StartTimeout = []membership.Source{s}, 10*time.Second
		f, err := client.New(o)
		if err != nil {
			t.Fatal(err)
		}
		go s.fails("no such host")
		var stall *client.StallError
		if _, err := f.Open(t.Context()); !errors.As(err, &stall) || !strings.Contains(err.Error(), "script: connecting: no such host") {
			t.Errorf("error %v", err)
		}
		if !strings.Contains(c.log.String(), "no such host") {
			t.Errorf("log:\n%s", c.log)
		}
		f.Close()
	})
}

// Addresses that may not be dialled, for the connection would be plain, end in the advice, not in a wait.
func TestSourceOfMachinesThatMayNotBeDialled(t *testing.T) {
	s := newScript()
	f, err := client.New(client.Options{Plan: plan, Sources: []membership.Source{s}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	go func() { s.answers <- membership.Answer{Nodes: []string{"10.0.0.1:7070"}} }()
	var address *node.AddressError
	if _, err := f.Open(t.Context()); !errors.As(err, &address) || !strings.Contains(err.Error(), "insecure=True") {
		t.Errorf("error %v", err)
	}
}

func TestSpellingsOfNodes(t *testing.T) {
	for _, nodes := range [][]string{{"dns:cpu"}, {"http://cpu:7070"}, {"k8s:a/b"}, {"localhost:1", "cpu"}} {
		_, err := client.New(client.Options{Plan: plan, Nodes: nodes})
		var address *node.AddressError
		if !errors.As(err, &address) || !strings.Contains(err.Error(), nodes[len(nodes)-1]) {
			t.Errorf("%q: %v", nodes, err)
		}
	}
	if _, err := client.New(client.Options{Plan: plan}); err == nil {
		t.Error("a fleet of no nodes")
	}
}

// A loop over a whole epoch while the list changes under it is the undisturbed one.
func TestStreamWhileMembershipChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		take := func(*batch.Name) time.Duration { return 20 * time.Millisecond }
		for _, addr := range []string{"a", "b", "c"} {
			c.start(addr, &servertest.Engine{Delay: take}, server.Options{})
		}
		want := digest(t, newLoader(t, loader.Options{Options: c.options("a"), Batch: 8}), 1)
		s := newScript()
		o := c.options()
		o.Sources = []membership.Source{s}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; ctx.Err() == nil; i++ {
				lists := [][]string{{"a"}, {"a", "b"}, {}, {"c"}, {"stranger"}, {"b", "c"}}
				select {
				case s.answers <- membership.Answer{Nodes: lists[i%len(lists)]}:
				case <-ctx.Done():
				}
				time.Sleep(70 * time.Millisecond)
			}
		}()
		l := newLoader(t, loader.Options{Options: o, Batch: 8})
		if got := digest(t, l, 1); got != want {
			t.Errorf("%s, not %s", got, want)
		}
		stop()
		<-done
		l.Close()
	})
}
