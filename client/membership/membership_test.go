package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watch follows a source until the end of the test.
func watch(t *testing.T, s Source) <-chan Answer {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	answers := make(chan Answer)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Watch(ctx, func(a Answer) {
			select {
			case answers <- a:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return answers
}

// until takes answers until one is as wanted. Others may come before: writers are seldom done at once.
func until(t *testing.T, answers <-chan Answer, want string) {
	t.Helper()
	t.Logf("waiting for %q", want)
	for a := range answers {
		t.Logf("came %q", text(a))
		if text(a) == want {
			return
		}
	}
}

// next takes the next answer.
func next(t *testing.T, answers <-chan Answer, want string) Answer {
	t.Helper()
	a := <-answers
	if got := text(a); got != want {
		t.Errorf("answer %q, not %q", got, want)
	}
	return a
}

func text(a Answer) string {
	switch {
	case a.Nodes == nil:
		return "cannot tell: " + fmt.Sprint(a.Err)
	case a.Err != nil:
		return strings.Join(a.Nodes, " ") + " but " + a.Err.Error()
	}
	return strings.Join(a.Nodes, " ")
}

func TestParse(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	targets := []string{
		"cpu-1:7070", "unix:/run/node.sock", "[::1]:7070",
		"dns:preproc:7070", "dns+srv:_feedwater._tcp.preproc", "file:/etc/nodes", "k8s:prod/preproc:grpc", "k8s:preproc",
	}
	addrs, sources, err := Parse(targets)
	if err != nil || !slices.Equal(addrs, targets[:3]) || len(sources) != 5 {
		t.Fatalf("%q, %v, %v", addrs, sources, err)
	}
	for i, s := range sources {
		if s.String() != targets[i+3] {
			t.Errorf("%s is told as %s", targets[i+3], s)
		}
	}
	for _, wrong := range []struct{ target, advice string }{
		{"cpu-1", "host:port"},
		{"cpu-1:", "host:port"},
		{"cpu-1:99999", "host:port"},
		{"http://cpu-1:7070", "host:port"},
		{":7070", "host:port"},
		{"dns:preproc", "dns:name:port"},
		{"dns:///preproc:7070", "dns:name:port"},
		{"dns+srv:preproc:7070", "ports stand in the records"},
		{"file:", "file:path"},
		{"k8s:", "k8s:namespace/service:port"},
		{"k8s:/preproc:7070", "k8s:namespace/service:port"},
		{"k8s:a/b/c:7070", "k8s:namespace/service:port"},
	} {
		_, err := NewList([]string{"localhost:1", wrong.target})
		var target *TargetError
		if !errors.As(err, &target) || target.Target != wrong.target || !strings.Contains(err.Error(), wrong.advice) {
			t.Errorf("%s: %v", wrong.target, err)
		}
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, _, err := Parse([]string{"k8s:prod/preproc:7070"}); err == nil || !strings.Contains(err.Error(), "within pods") {
		t.Errorf("outside a pod: %v", err)
	}
}

// fixed is a source that tells what a test says.
type fixed struct {
	name    string
	answers chan Answer
}

func (f fixed) String() string { return f.name }

func (f fixed) Watch(ctx context.Context, tell func(Answer)) {
	for {
		select {
		case a := <-f.answers:
			tell(a)
		case <-ctx.Done():
			return
		}
	}
}

func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := fixed{"one", make(chan Answer)}, fixed{"two", make(chan Answer)}
		l, err := NewList([]string{"m:1"})
		if err != nil {
			t.Fatal(err)
		}
		if all, err := l.Nodes(t.Context()); err != nil || !slices.Equal(all, []string{"m:1"}) {
			t.Errorf("without sources %q, %v", all, err)
		}
		l.sources, l.all = []Source{one, two}, make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.Run(ctx)
		}()
		check := func(s fixed, a Answer, want string) {
			t.Helper()
			s.answers <- a
			synctest.Wait()
			all, err := l.Nodes(t.Context())
			if got := fmt.Sprint(strings.Join(all, " "), err); got != want {
				t.Errorf("%s, not %s", got, want)
			}
		}
		one.answers <- Answer{Err: errors.New("timeout")}
		synctest.Wait()
		early, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Nodes(early); !errors.Is(err, context.Canceled) {
			t.Errorf("before all have answered: %v", err)
		}
		check(two, Answer{Nodes: []string{"z:1", "a:1"}}, "one: timeout")
		check(one, Answer{Nodes: []string{"z:1"}}, "a:1 m:1 z:1<nil>")
		check(two, Answer{Err: errors.New("timeout")}, "a:1 m:1 z:1<nil>")
		check(two, Answer{Nodes: []string{}}, "m:1 z:1<nil>")
		stop()
		<-ended
	})
}
