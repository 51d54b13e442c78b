package client

import (
	"fmt"
	"slices"
	"time"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// settleFor is how long a job that begins waits for the nodes that have not answered yet, once the first has.
const settleFor = time.Second

// applicants are the nodes that answered before the job had any numerics or data of its own. All that the fleet connects to are heard before one is
// let in: the ranks of a job hear them in other orders, and must not begin with other data each.
type applicants struct {
	all   []applicant
	since time.Time // the first came
	odd   *member   // one of other data than another has: Open fails, once it is known in what
}

type applicant struct {
	member  *member
	info    *pb.OpenResponse
	verdict chan<- judgement
}

// apply judges a node's answer, at once or when all have been heard. The fleet's goroutine runs this, and settle.
func (f *Fleet) apply(a applicant) {
	v := f.judge(a.member, a.info)
	switch {
	case v.err != nil || f.info.Load() != nil:
		a.verdict <- v
		return
	case f.options.Fingerprint != "":
		f.info.Store(a.info)
		a.verdict <- v
		return
	}
	now := time.Now()
	if len(f.applied.all) == 0 {
		f.applied.since = now
	}
	f.applied.all = append(f.applied.all, a)
	f.settle(now)
}

// settle lets the applicants in once nobody else is waited for, or has Open fail if their data differs.
func (f *Fleet) settle(now time.Time) {
	all := slices.DeleteFunc(f.applied.all, func(a applicant) bool { return !slices.Contains(f.members, a.member) })
	f.applied.all = all
	if len(all) == 0 || slices.Contains(f.members, f.applied.odd) || now.Sub(f.applied.since) < settleFor && f.awaited() {
		return
	}
	usual := usualNumerics(all)
	first := all[slices.IndexFunc(all, func(a applicant) bool { return a.info.Numerics == usual })]
	for _, a := range all {
		if a.info.Fingerprint != first.info.Fingerprint {
			f.applied.odd = a.member // the others wait in vain
			a.verdict <- otherData(first)
			return
		}
	}
	f.info.Store(first.info)
	f.applied.all = nil
	for _, a := range all {
		a.verdict <- f.judge(a.member, a.info)
	}
}

// awaited reports whether a node may be heard yet.
func (f *Fleet) awaited() bool {
	return f.expects() || slices.ContainsFunc(f.members, func(m *member) bool {
		return m.chosen && !m.tried && !slices.ContainsFunc(f.applied.all, func(a applicant) bool { return a.member == m })
	})
}

// usualNumerics are those of most applicants, so that the ranks of a job agree: the same of equally many, whoever came first.
func usualNumerics(all []applicant) string {
	count := map[string]int{}
	for _, a := range all {
		count[a.info.Numerics]++
	}
	usual := all[0].info.Numerics
	for n, k := range count {
		if k > count[usual] || k == count[usual] && n < usual {
			usual = n
		}
	}
	return usual
}

func otherData(first applicant) judgement {
	return judgement{
		err:       &DataError{Message: fmt.Sprintf("other data than %s has, and a job that begins cannot know which is meant: give all nodes the same, or name only those that have it", first.member.node.Addr())},
		reference: first.member.node, info: first.info,
	}
}
