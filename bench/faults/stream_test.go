//go:build linux

package main

import "testing"

// two epochs of five samples.
func whole() stream {
	s := stream{}
	for i := range uint64(10) {
		s.add(line{Epoch: uint32(i / 5), Position: i % 5, Samples: []sample{{index: i, digest: "x"}}}, 5)
	}
	return s
}

func TestCompare(t *testing.T) {
	end := place{1, 4}
	for name, c := range map[string]struct {
		harm func(stream)
		want difference
	}{
		"nothing":              {func(stream) {}, difference{}},
		"a hole":               {func(s stream) { delete(s, place{0, 4}) }, difference{Lost: 1}},
		"a hole at the end":    {func(s stream) { delete(s, place{1, 3}) }, difference{Lost: 1}},
		"not all have come so": {func(s stream) { delete(s, place{1, 4}) }, difference{}},
		"twice":                {func(s stream) { s[place{0, 2}] = append(s[place{0, 2}], s[place{0, 2}][0]) }, difference{Repeated: 1}},
		"other pixels":         {func(s stream) { s[place{1, 0}] = []sample{{index: 5, digest: "y"}} }, difference{Changed: 1}},
		"another sample":       {func(s stream) { s[place{0, 1}] = []sample{{index: 2, digest: "x"}} }, difference{Changed: 1}},
		"beyond what is known": {func(s stream) { s[place{7, 0}] = []sample{{}} }, difference{Changed: 1}},
		"filled up":            {func(s stream) { s.add(line{Position: 5, Samples: []sample{{}, {}}}, 5) }, difference{}},
		"resumed": {func(s stream) {
			s.forget(place{0, 3})
			for p, one := range whole() {
				if !p.before(place{0, 3}) {
					s[p] = append(s[p], one...)
				}
			}
		}, difference{}},
	} {
		s := whole()
		c.harm(s)
		if got := s.compare(whole(), end, 5); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
