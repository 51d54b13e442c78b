//go:build linux

package main

import "encoding/json"

// place is where a sample stands in a run.
type place struct {
	epoch    uint32
	position uint64
}

func (p place) before(q place) bool {
	return p.epoch < q.epoch || p.epoch == q.epoch && p.position < q.position
}

// stream is what a job got, by place: more than one sample where it was given more than once.
type stream map[place][]sample

// add takes what a rank told of a batch. Positions behind the end of the epoch fill up the last step, and do not count.
func (s stream) add(l line, samples uint64) {
	for i, one := range l.Samples {
		if p := (place{l.Epoch, l.Position + uint64(i)}); p.position < samples {
			s[p] = append(s[p], one)
		}
	}
}

// forget drops what lies at or behind a place: a job that resumes from there gets it again.
func (s stream) forget(from place) {
	for p := range s {
		if !p.before(from) {
			delete(s, p)
		}
	}
}

// difference is how a stream differs from the undisturbed one.
type difference struct {
	Lost     int `json:"lost"`
	Repeated int `json:"repeated"`
	Changed  int `json:"changed"`
}

// compare looks at all places before until, which every rank has passed, for what is lost, and everywhere for the rest.
func (s stream) compare(undisturbed stream, until place, samples uint64) difference {
	var d difference
	for at := (place{}); at.before(until); at.position++ {
		if at.position == samples {
			at = place{at.epoch + 1, 0}
			if !at.before(until) {
				break
			}
		}
		if len(s[at]) == 0 {
			d.Lost++
		}
	}
	for p, got := range s {
		d.Repeated += len(got) - 1
		for _, one := range got {
			if want := undisturbed[p]; len(want) == 0 || one != want[0] {
				d.Changed++
			}
		}
	}
	return d
}

// cursor is the place that a state stands for; nil is the beginning.
func cursor(state json.RawMessage) (place, error) {
	var s struct {
		Epoch    uint32 `json:"epoch"`
		Consumed uint64 `json:"consumed"`
	}
	if state == nil { // the beginning
		return place{}, nil
	}
	err := json.Unmarshal(state, &s)
	return place{s.Epoch, s.Consumed}, err
}
