package pipeline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/feedwater-io/feedwater/batch"
)

// As many samples are told of as are asked for, those that took longest first, with their keys and stages.
func TestSlowest(t *testing.T) {
	const count = 20
	j := open(t, folder(t), fmt.Sprintf(cropPlan, ""), Options{Workers: 2})
	for _, slowest := range []int{2, count} {
		w := &Want{Name: batch.Name{Count: count}, Slowest: slowest, Request: batch.Request{Dst: make([]byte, 1<<20)}}
		done := make(chan Result, 1)
		w.Done = func(r Result) { done <- r }
		if err := j.Submit(w); err != nil {
			t.Fatal(err)
		}
		r := <-done
		if r.Err != nil || len(r.Slowest) != slowest {
			t.Fatalf("%v, %v", r.Slowest, r.Err)
		}
		if !slices.IsSortedFunc(r.Slowest, func(a, b Timing) int { return int(b.Took() - a.Took()) }) {
			t.Errorf("not the longest first: %+v", r.Slowest)
		}
		told := map[string]bool{}
		for _, s := range r.Slowest {
			if s.Begun.Before(r.Begun) || s.Read <= 0 || s.Queued < 0 || s.Made <= 0 || s.Key == "" {
				t.Errorf("%+v", s)
			}
			told[s.Key] = true
		}
		if len(told) != slowest {
			t.Errorf("some are told of twice: %+v", r.Slowest)
		}
	}
}

// Those told of are the ones that took longest from when they were taken up, not those that were done last.
func TestSlowestOfAll(t *testing.T) {
	j := open(t, folder(t), fmt.Sprintf(cropPlan, ""), Options{Workers: 1})
	w := &Want{job: j, Name: batch.Name{List: []batch.Ref{{Index: 0}, {Index: 1}, {Index: 2}, {Index: 3}}}, Slowest: 2}
	a := &assembly{want: w, stamps: []stamp{{10, 11, 12, 20}, {1, 2, 3, 16}, {30, 31, 32, 41}, {}}}
	var told []uint64
	for _, s := range a.listSlowest() {
		told = append(told, s.Index)
	}
	if !slices.Equal(told, []uint64{1, 2}) {
		t.Errorf("samples %v", told)
	}
}

// Where a file cannot be read the time went into reading; what was not begun is not told of, and without being asked nothing is.
func TestSlowestOfAFailure(t *testing.T) {
	dir := folder(t)
	j := open(t, dir, fmt.Sprintf(cropPlan, ""), Options{Workers: 1, Readers: 1})
	if err := os.Remove(filepath.Join(dir, "class_1/img_2.jpg")); err != nil {
		t.Fatal(err)
	}
	for _, slowest := range []int{0, 100} {
		w := &Want{Name: batch.Name{List: []batch.Ref{{Index: 9}, {Index: 0}, {Index: 1}}}, Slowest: slowest, Request: batch.Request{Dst: make([]byte, 1<<20)}}
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
