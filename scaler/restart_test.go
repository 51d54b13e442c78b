package scaler_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/feedwater-io/feedwater/proto/externalscaler"
	"github.com/feedwater-io/feedwater/scaler"
)

// A scaler that begins while trainers train never says that no nodes are wanted, not to KEDA's stream either: it says
// nothing until all nodes have answered, or had the time to.
func TestRestartIsNoZero(t *testing.T) {
	for name, hung := range map[string]bool{"all answer": false, "one is silent": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorldOf(t, func(w *world) {
					w.node("a").set(map[string]uint32{"x": 3}, false)
					w.node("b").set(nil, hung)
				})
				stream, err := w.keda.StreamIsActive(t.Context(), &externalscaler.ScaledObjectRef{})
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					for {
						r, err := stream.Recv()
						if err != nil {
							return
						}
						if !r.Result {
							t.Error("the stream says that no node is wanted")
						}
					}
				}()
				known := 0
				for range 60 {
					r, err := w.keda.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{MetricName: scaler.Metric})
					switch {
					case err == nil && r.MetricValues[0].MetricValueFloat != 3:
						t.Fatalf("%g nodes, want 3", r.MetricValues[0].MetricValueFloat)
					case err == nil:
						known++
					case status.Code(err) != codes.Unavailable:
						t.Fatal(err)
					}
					time.Sleep(time.Second)
				}
				if least := 40; known < least || !hung && known < 58 {
					t.Errorf("the number was known in %d of 60 seconds", known)
				}
			})
		})
	}
}

// A scaler that begins does not know what was asked for before it. It takes what there is for that, so that a restart in a quiet moment of a job,
// or one beside another scaler that remembers more, takes no node away.
func TestRestartKeepsWhatThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, func(w *world) {
			for _, addr := range []string{"a", "b", "c"} {
				w.node(addr).set(map[string]uint32{"x": 1}, false)
			}
		})
		for range 9 {
			time.Sleep(10 * time.Second)
			if n := w.metric(); n != 3 {
				t.Fatalf("%d nodes, want the 3 that there are", n)
			}
		}
		time.Sleep(time.Minute)
		if n := w.metric(); n != 1 {
			t.Errorf("%d nodes after that, want 1", n)
		}
	})
}

// Nodes that are slow to answer are there too, as on machines that are all in use.
func TestRestartCountsSlowNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, func(w *world) {
			for _, addr := range []string{"a", "b"} {
				w.node(addr).set(map[string]uint32{"x": 1}, false)
			}
			w.node("c").set(nil, true)
		})
		known := 0
		for range 100 {
			time.Sleep(time.Second)
			n, err := w.scaler.Wanted()
			if err != nil {
				continue
			}
			if known++; n != 3 {
				t.Fatalf("%d nodes, and three are there", n)
			}
		}
		if known < 80 {
			t.Errorf("the number was known in %d of 100 seconds", known)
		}
	})
}

// Nodes that answer only after the first number is settled are not taken for a word in it.
func TestLateNodesDoNotConfirm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a *fakeNode
		w := newWorldOf(t, func(w *world) {
			a = w.node("a")
			a.set(nil, true)
		})
		time.Sleep(16 * time.Second)
		a.set(map[string]uint32{"x": 2}, false)
		for range 30 {
			if n, err := w.scaler.Wanted(); err == nil && n != 2 {
				t.Fatalf("%d nodes, want 2", n)
			}
			time.Sleep(time.Second)
		}
		if n := w.metric(); n != 2 {
			t.Errorf("%d nodes, want 2", n)
		}
	})
}

// Where nodes cannot be listed nothing is known.
func TestUnlistedIsNoZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scaler.New(scaler.Options{Nodes: func(context.Context) ([]string, error) { return nil, context.DeadlineExceeded }})
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		s.Run(ctx)
		if _, err := s.Wanted(); status.Code(err) != codes.Unavailable {
			t.Errorf("%v", err)
		}
	})
}
