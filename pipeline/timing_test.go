package pipeline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
)

// The sample that took longest is among the slowest, with its key and the stage in which it did.
func TestSlowest(t *testing.T) {
	j := open(t, folder(t), fmt.Sprintf(cropPlan, ""), Options{Workers: 2})
	const count = 20
	var others atomic.Int64
	all := make(chan struct{})
	w := &Want{Name: Name{Count: count}, Slowest: 2, Dst: make([]byte, 1<<20)}
	w.Image = func(_, i int, _ []byte) {
		if i == 0 {
			<-all
		} else if others.Add(1) == count-1 {
			close(all)
		}
	}
	done := make(chan Result, 1)
	w.Done = func(r Result) { done <- r }
	if err := j.Submit(w); err != nil {
		t.Fatal(err)
	}
	r := <-done
	if r.Err != nil || len(r.Slowest) != 2 {
		t.Fatalf("%v, %v", r.Slowest, r.Err)
	}
	for _, s := range r.Slowest {
		if s.Begun.Before(r.Begun) || s.Read <= 0 || s.Queued < 0 || s.Made <= 0 {
			t.Errorf("%+v", s)
		}
		if ref := w.ref(0); s.Index == ref.Index && s.Made > s.Read && s.Key != "" {
			return
		}
	}
	t.Errorf("%+v, without sample %d", r.Slowest, w.ref(0).Index)
}

// Where a file cannot be read the time went into reading; what was not begun is not told of, and without being asked nothing is.
func TestSlowestOfAFailure(t *testing.T) {
	dir := folder(t)
	j := open(t, dir, fmt.Sprintf(cropPlan, ""), Options{Workers: 1, Readers: 1})
	if err := os.Remove(filepath.Join(dir, "class_1/img_2.jpg")); err != nil {
		t.Fatal(err)
	}
	for _, slowest := range []int{0, 100} {
		w := &Want{Name: Name{List: []Ref{{Index: 9}, {Index: 0}, {Index: 1}}}, Slowest: slowest, Dst: make([]byte, 1<<20)}
		done := make(chan Result, 1)
		w.Done = func(r Result) { done <- r }
		if err := j.Submit(w); err != nil {
			t.Fatal(err)
		}
		r := <-done
		var read *ReadError
		if !errors.As(r.Err, &read) || len(r.Slowest) > slowest {
			t.Fatalf("%v, %v", r.Slowest, r.Err)
		}
		gone := slices.IndexFunc(r.Slowest, func(s Timing) bool { return s.Key == "class_1/img_2.jpg" }) // another sample may be done before
		if slowest > 0 && (gone < 0 || r.Slowest[gone].Made != 0 || r.Slowest[gone].Read <= 0) {
			t.Errorf("%+v", r.Slowest)
		}
	}
}
