package dedup

import (
	"slices"
	"testing"
	"time"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// fakeWant notes what it is told. Its batch is made when the test calls publish.
type fakeWant struct {
	due       time.Time
	room      int
	submits   int
	publish   func(*Batch)
	moved     []time.Time
	cancels   int
	cancelled int
	got       []byte
}

func (f *fakeWant) Priority() Priority { return Priority{Due: f.due} }
func (f *fakeWant) Submit(p func(*Batch)) {
	f.submits++
	f.publish = p
}
func (f *fakeWant) MoveUp(p Priority)                  { f.moved = append(f.moved, p.Due) }
func (f *fakeWant) Cancel()                            { f.cancels++ }
func (f *fakeWant) Reserve(int) []byte                 { return make([]byte, f.room) }
func (f *fakeWant) FinishShared(b *Batch, room []byte) { f.got = room[:copy(room, b.Data)] }
func (f *fakeWant) FinishCancelled()                   { f.cancelled++ }

func batchOf(text string) *Batch { return &Batch{Header: &pb.Header{}, Data: []byte(text)} }

func submit(g *Group, name string, f *fakeWant) *Waiter {
	w := &Waiter{Want: f}
	g.Submit(Key{Name: name}, w)
	return w
}

// Wants of one batch are one call, made as early as the most urgent of them needs it; those that come later find it in
// the cache.
func TestEqualWantsAreOneCall(t *testing.T) {
	g := New(100)
	now := time.Now()
	first, second, late := &fakeWant{due: now.Add(time.Hour)}, &fakeWant{due: now, room: 10}, &fakeWant{room: 10}
	submit(g, "a", first)
	submit(g, "a", second)
	if first.submits != 1 || second.submits != 0 || !slices.ContainsFunc(first.moved, now.Equal) {
		t.Errorf("submitted %d and %d times, moved up to %v", first.submits, second.submits, first.moved)
	}
	first.publish(batchOf("pixels"))
	submit(g, "a", late)
	if string(second.got) != "pixels" || string(late.got) != "pixels" || late.submits != 0 {
		t.Errorf("shared %q, later %q", second.got, late.got)
	}
}

// A failure is nobody's but the maker's: the next one makes the batch. So does one without room for a copy.
func TestFailuresAreNotShared(t *testing.T) {
	g := New(100)
	first, second, third := &fakeWant{}, &fakeWant{room: 10}, &fakeWant{}
	submit(g, "a", first)
	submit(g, "a", second)
	submit(g, "a", third)
	first.publish(nil)
	if second.submits != 1 || second.publish == nil || third.submits != 0 {
		t.Fatalf("after a failure: %d and %d submit", second.submits, third.submits)
	}
	second.publish(batchOf("pixels"))
	if third.submits != 1 || third.publish != nil || third.got != nil {
		t.Errorf("without room: submitted %d times, got %q", third.submits, third.got)
	}
}

// Who waits is taken out of a call; who makes it has to be given up where it is made.
func TestCancel(t *testing.T) {
	g := New(100)
	first, second := &fakeWant{}, &fakeWant{room: 10}
	maker, waiter := submit(g, "a", first), submit(g, "a", second)
	if !g.Cancel(waiter) || second.cancelled != 1 {
		t.Errorf("cancelled %d times", second.cancelled)
	}
	if g.Cancel(maker) {
		t.Error("what is being made is cancelled here")
	}
	first.publish(batchOf("pixels"))
	if second.got != nil {
		t.Errorf("got %q after it was cancelled", second.got)
	}
	if (*Group)(nil).Cancel(&Waiter{}) || New(0) != nil {
		t.Error("no group shares")
	}
}

// The cache stays within its limit; what nobody took for longest goes first, and what is too large is not kept.
func TestCacheIsBounded(t *testing.T) {
	g := New(10)
	for _, name := range []string{"a", "b", "c", "large"} {
		f := &fakeWant{}
		submit(g, name, f)
		text := "pixel"
		if name == "large" {
			text = "too many pixels"
		}
		f.publish(batchOf(text))
	}
	for name, kept := range map[string]bool{"a": false, "b": true, "c": true, "large": false} {
		f := &fakeWant{room: 20}
		submit(g, name, f)
		if (f.got != nil) != kept {
			t.Errorf("%s: got %q", name, f.got)
		}
	}
	if g.cache.used > 10 {
		t.Errorf("%d bytes are kept", g.cache.used)
	}
}
