package order

import (
	"strings"
	"testing"
)

// Worked out by hand. A step is written as the cursor, then position+count(valid) of every rank.
func TestStepsByHand(t *testing.T) {
	type steps []struct {
		cursor uint64
		shares []Share
	}
	last := func(cursor uint64, s ...Share) steps { return steps{{cursor, s}} }
	for name, v := range map[string]struct {
		e     Epoch
		count uint64
		steps steps
	}{
		// G = 21: 23 full steps make 483, 17 are left, ⌈17/3⌉ = 6 each, 18 in all, the last one is position 500: a
		// repeat.
		"500 by 3×7, short": {Epoch{Samples: 500, Ranks: 3, Batch: 7}, 24, append(
			last(462, Share{462, 7, 7, 483}, Share{469, 7, 7, 483}, Share{476, 7, 7, 483}),
			last(483, Share{483, 6, 6, 500}, Share{489, 6, 6, 500}, Share{495, 6, 5, 500})...)},
		// Rank 0 has 483…489, rank 1 490…496, rank 2 497…503, of which 497, 498, 499 exist.
		"500 by 3×7, valid": {Epoch{Samples: 500, Ranks: 3, Batch: 7, Tail: Valid}, 24,
			last(483, Share{483, 7, 7, 500}, Share{490, 7, 7, 500}, Share{497, 7, 3, 500})},
		"500 by 3×7, drop": {Epoch{Samples: 500, Ranks: 3, Batch: 7, Tail: Drop}, 23,
			last(462, Share{462, 7, 7, 483}, Share{469, 7, 7, 483}, Share{476, 7, 7, 483})},
		// 30 steps of 21 are 630 positions: 500…629 are repeats.
		"500 by 3×7, 30 steps": {Epoch{Samples: 500, Ranks: 3, Batch: 7, Steps: 30, Tail: Drop}, 30, append(
			last(483, Share{483, 7, 7, 504}, Share{490, 7, 7, 504}, Share{497, 7, 7, 504}),
			last(609, Share{609, 7, 7, 630}, Share{616, 7, 7, 630}, Share{623, 7, 7, 630})...)},
		"1 by 1×1":        {Epoch{Samples: 1, Ranks: 1, Batch: 1}, 1, last(0, Share{0, 1, 1, 1})},
		"1 by 3×4, short": {Epoch{Samples: 1, Ranks: 3, Batch: 4}, 1, last(0, Share{0, 1, 1, 1}, Share{1, 1, 0, 1}, Share{2, 1, 0, 1})},
		"1 by 3×4, valid": {Epoch{Samples: 1, Ranks: 3, Batch: 4, Tail: Valid}, 1, last(0, Share{0, 4, 1, 1}, Share{4, 4, 0, 1}, Share{8, 4, 0, 1})},
		"1 by 3×4, drop":  {Epoch{Samples: 1, Ranks: 3, Batch: 4, Tail: Drop}, 0, nil},
		"1 by 3×4, 2 steps": {Epoch{Samples: 1, Ranks: 3, Batch: 4, Steps: 2}, 2,
			last(12, Share{12, 4, 4, 24}, Share{16, 4, 4, 24}, Share{20, 4, 4, 24})},
		// Batch larger than the samples: one step of 5, ⌈5/2⌉ = 3 each.
		"5 by 2×64, short": {Epoch{Samples: 5, Ranks: 2, Batch: 64}, 1, last(0, Share{0, 3, 3, 5}, Share{3, 3, 2, 5})},
		"5 by 2×64, valid": {Epoch{Samples: 5, Ranks: 2, Batch: 64, Tail: Valid}, 1, last(0, Share{0, 64, 5, 5}, Share{64, 64, 0, 5})},
		// More ranks than samples: one each, five repeats = W−1−(N−1).
		"2 by 7×3, short": {Epoch{Samples: 2, Ranks: 7, Batch: 3}, 1,
			last(0, Share{0, 1, 1, 2}, Share{1, 1, 1, 2}, Share{2, 1, 0, 2}, Share{3, 1, 0, 2}, Share{4, 1, 0, 2}, Share{5, 1, 0, 2}, Share{6, 1, 0, 2})},
		// It divides: nothing special at the end.
		"12 by 2×3, short": {Epoch{Samples: 12, Ranks: 2, Batch: 3}, 2, last(6, Share{6, 3, 3, 12}, Share{9, 3, 3, 12})},
	} {
		if err := v.e.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := v.e.StepCount(); got != v.count {
			t.Errorf("%s: %d steps, want %d", name, got, v.count)
		}
		for _, s := range v.steps {
			for rank, want := range s.shares {
				if got, ok := v.e.Step(s.cursor, rank); !ok || got != want {
					t.Errorf("%s: cursor %d rank %d: %+v, %v, want %+v", name, s.cursor, rank, got, ok, want)
				}
			}
		}
	}
}

// Whatever the sizes: ranks agree on count and next cursor, every sample comes exactly once, repeats are fewer than
// ranks.
func TestEveryPositionOnce(t *testing.T) {
	for samples := uint64(1); samples <= 60; samples++ {
		for ranks := 1; ranks <= 5; ranks++ {
			for batch := 1; batch <= 9; batch += 2 {
				for _, tail := range []Tail{"", Short, Valid, Drop} {
					walk(t, Epoch{Samples: samples, Ranks: ranks, Batch: batch, Tail: tail}, 0)
				}
			}
		}
	}
}

// A run may go on with other ranks and another batch: still every sample once.
func TestResumeOnAnotherWorld(t *testing.T) {
	for _, tail := range []Tail{Short, Valid} {
		first := Epoch{Samples: 500, Ranks: 3, Batch: 7, Tail: tail}
		cursor := uint64(0)
		for range 5 {
			s, _ := first.Step(cursor, 0)
			cursor = s.Next
		}
		walk(t, Epoch{Samples: 500, Ranks: 8, Batch: 5, Tail: tail}, cursor)
	}
	e := Epoch{Samples: 500, Ranks: 2, Batch: 8, Steps: 10}
	if got := e.StepsLeft(105); got != 4 { // ⌈(160−105)/16⌉
		t.Errorf("%d steps left of 10 at 105 of 160, want 4", got)
	}
}

func walk(t *testing.T, e Epoch, cursor uint64) {
	t.Helper()
	left, end := e.StepsLeft(cursor), cursor
	full := uint64(e.Ranks * e.Batch)
	for ; ; left-- {
		s0, ok := e.Step(cursor, 0)
		if ok != (left > 0) {
			t.Fatalf("%+v: cursor %d: step %v with %d left", e, cursor, ok, left)
		}
		if !ok {
			break
		}
		position, repeats := cursor, 0
		for rank := range e.Ranks {
			s, _ := e.Step(cursor, rank)
			if s.Count != s0.Count || s.Next != s0.Next || s.Position != position {
				t.Fatalf("%+v: cursor %d rank %d: %+v, rank 0 %+v", e, cursor, rank, s, s0)
			}
			position += uint64(s.Count)
			end += uint64(s.Valid)
			repeats += s.Count - s.Valid
		}
		if cursor = s0.Next; end != cursor {
			t.Fatalf("%+v: %d valid up to cursor %d", e, end, cursor)
		}
		if e.Tail != Valid && repeats >= e.Ranks {
			t.Fatalf("%+v: %d repeats", e, repeats)
		}
	}
	if want := e.Samples; e.Tail != Drop && cursor != want {
		t.Fatalf("%+v: ends at %d", e, cursor)
	} else if e.Tail == Drop && (cursor > want || want-cursor >= full) {
		t.Fatalf("%+v: ends at %d", e, cursor)
	}
}

func TestCheckNamesTheField(t *testing.T) {
	good := Epoch{Samples: 10, Ranks: 2, Batch: 3}
	for field, change := range map[string]func(*Epoch){
		"samples": func(e *Epoch) { e.Samples = 0 },
		"ranks":   func(e *Epoch) { e.Ranks = -1 },
		"batch":   func(e *Epoch) { e.Batch = 0 },
		"steps":   func(e *Epoch) { e.Steps = 1 << 63 },
		"tail":    func(e *Epoch) { e.Tail = "keep" },
	} {
		e := good
		change(&e)
		if err := e.Check(); err == nil || !strings.HasPrefix(err.Error(), field+":") {
			t.Errorf("%s: %v", field, err)
		}
	}
	huge := Epoch{Samples: MaxSamples, Ranks: maxSize, Batch: maxSize, Steps: 1 << 15}
	if err := huge.Check(); err != nil {
		t.Error(err)
	}
	if s, ok := huge.Step(1<<63-1<<48, maxSize-1); !ok || s.Next != 1<<63 {
		t.Errorf("%+v, %v", s, ok)
	}
}
