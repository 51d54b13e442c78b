package client

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// deafStream takes attempts and is never heard again.
type deafStream struct {
	node.Stream

	heard     time.Time
	cancelled int
}

func (s *deafStream) Send(*node.Attempt)   {}
func (s *deafStream) Cancel(*node.Attempt) { s.cancelled++ }
func (s *deafStream) Heard() time.Time     { return s.heard }

// waiting is a fleet amid a batch: one node has its only want since began, and spoke then.
func waiting(t *testing.T, began time.Time) (*Fleet, *deafStream, *[]error) {
	t.Helper()
	f, err := New(Options{Nodes: []string{"unix:a"}, Timeout: 8 * time.Second, StartTimeout: 8 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	f.job.info.Store(&pb.OpenResponse{})
	s := &deafStream{heard: began}
	m := f.initial[0]
	m.session = &session{member: m, stream: s, workers: 2, lastAnswer: began, firstAsked: began}
	m.chosen = true
	f.roster.addMember(m)
	f.roster.refreshLive()
	f.job.epoch, f.inFlight.lastProgress, f.roster.connected = began, began, began.Add(time.Hour)
	errs := &[]error{}
	w := &Want{Name: &pb.Name{Samples: &pb.Name_Range{Range: &pb.Range{Count: 8}}}, Request: batch.Request{Due: began.Add(time.Second)}, Done: func(r Result) { *errs = append(*errs, r.Err) }}
	w.count = 8
	f.queue.all[w] = struct{}{}
	f.inFlight.sendWant(w, m.session, began)
	w.attempts[0].markBegun(began)
	return f, s, errs
}

// turn is a turn of the fleet's goroutine at a time.
func (f *Fleet) turn(now time.Time) {
	f.checkSuspension(now)
	f.handleTick(now)
}

// A timeout counts time in which this process ran: one that was stopped for longer goes on, its nodes have not fallen
// silent, and what is left of the timeout is left.
func TestTimeStoppedCountsForNoTimeout(t *testing.T) {
	began := time.Now()
	f, s, errs := waiting(t, began)
	now := began
	run := func(d time.Duration) {
		for end := now.Add(d); now.Before(end); {
			now = now.Add(tickEvery)
			f.turn(now)
		}
	}
	run(500 * time.Millisecond)
	for range 3 {
		now = now.Add(13 * time.Second)
		f.turn(now)
		if len(*errs) > 0 || s.cancelled > 0 || f.roster.live[0].session.silence.on {
			t.Fatalf("after it was stopped: %v, %d cancelled, silent %v", *errs, s.cancelled, f.roster.live[0].session.silence.on)
		}
		s.heard = now
	}
	a := f.roster.live[0].session.attempts[0]
	if age := now.Sub(a.sent); age > 2*time.Second {
		t.Errorf("the attempt is %s old", age)
	}
	if in := a.want.dueIn(now); in < -1 {
		t.Errorf("the want is late by %g s", -in)
	}
	if c := f.job.clock(now); c > 2 {
		t.Errorf("the clock of package pick shows %g s", c)
	}
	run(3 * time.Second)
	if !f.roster.live[0].session.silence.on || s.cancelled == 0 {
		t.Error("a node that says nothing while this process runs is not silent")
	}
	if limit := f.job.options.Timeout; now.Sub(f.inFlight.lastProgress) > limit-2*time.Second {
		t.Fatalf("%s of %s are over", now.Sub(f.inFlight.lastProgress), limit)
	}
	stalled := f.inFlight.lastProgress
	run(5 * time.Second)
	if f.inFlight.lastProgress.Equal(stalled) {
		t.Error("the timeout is never over")
	}
}

// A turn that comes late by less than half a second is a busy machine's, whose time counts.
func TestBusyTimeCounts(t *testing.T) {
	began := time.Now()
	f, _, _ := waiting(t, began)
	for i := range 20 {
		f.turn(began.Add(time.Duration(i) * 400 * time.Millisecond))
	}
	if !f.inFlight.lastProgress.Equal(began) || !f.inFlight.resumed.IsZero() {
		t.Error("a busy machine's time was taken for none")
	}
}

// A node whose deadline was over while this process was stopped has not failed.
func TestDeadlineOverWhileStopped(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		began := time.Now()
		f, _, _ := waiting(t, began)
		a := f.roster.live[0].session.attempts[0]
		f.turn(began.Add(tickEvery))
		now := began.Add(2 * tickEvery)
		if stopped {
			now = now.Add(time.Minute)
		}
		f.turn(now)
		f.inFlight.handleAnswer(a, node.Answer{Failure: &pb.Failure{Code: 1}})
		if missed := f.inFlight.effort.Missed > 0; missed == stopped {
			t.Errorf("stopped %v: missed %v", stopped, missed)
		}
		if len(f.queue.waiting) != 1 {
			t.Errorf("stopped %v: the want is not in the queue", stopped)
		}
	}
}

// Every time that the fleet's goroutine keeps is either moved on by shiftTimes, or stays for a reason. Who adds one
// decides.
func TestResumeMovesEveryTime(t *testing.T) {
	stays := map[string]string{
		"Fleet.lastRun":        "is now",
		"inFlight.resumed":     "is now",
		"roster.connected":     "nodes may be chosen anew at once",
		"scalerCalls.last":     "the scaler may be asked at once",
		"scalerCalls.warned":   "a log may have its line earlier",
		"member.busyUntil":     "the node's own clock",
		"member.warned":        "a log may have its line earlier",
		"session.firstAsked":   "compared with when the node was heard",
		"session.lastCancel":   "compared with when the node was heard",
		"silence.since":        "compared with when the node was heard",
		"silence.probe":        "a node may be probed at once",
		"nodeFailures.retryAt": "a node may be tried at once",
		"Trace.Sent":           "shown as it was",
		"Trace.Ended":          "shown as it was",
	}
	began := time.Now()
	f, _, _ := waiting(t, began)
	m := f.roster.live[0]
	a := m.session.attempts[0]
	owners := []any{f, f.job, f.roster, f.queue, f.inFlight, f.inFlight.chooser, f.opener, m, m.session, a, a.want, &f.scaler, &m.session.silence}
	for _, o := range owners {
		eachTime(o, func(_ string, at *time.Time) { *at = began })
	}
	f.shiftTimes(time.Minute, began.Add(2*time.Minute))
	for _, o := range owners {
		eachTime(o, func(name string, at *time.Time) {
			_, exempt := stays[name]
			if moved := at.Equal(began.Add(time.Minute)); moved == exempt {
				t.Errorf("%s: moved %v; resume has to move it, or it has to be named here with the reason", name, moved)
			}
		})
	}
}

// eachTime calls fn with the fields of a struct that are times, and with those of structs that are embedded.
func eachTime(owner any, fn func(name string, at *time.Time)) {
	v := reflect.ValueOf(owner).Elem()
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Anonymous && f.Type.Kind() == reflect.Struct {
			eachTime(v.Field(i).Addr().Interface(), fn)
		}
		if v.Field(i).Type() == reflect.TypeFor[time.Time]() {
			name := v.Type().String() + "." + v.Type().Field(i).Name
			fn(strings.TrimPrefix(name, "client."), (*time.Time)(v.Field(i).Addr().UnsafePointer()))
		}
	}
}
