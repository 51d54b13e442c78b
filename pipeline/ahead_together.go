package pipeline

import (
	"cmp"
	"errors"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

// Samples of one want that lie close together in an object on a server are read ahead by one question.

// errAlone says that a read of several samples failed, and not of their server: each is read alone, so that none is blamed for another.
var errAlone = errors.New("several samples could not be read by one question")

// arrangement says which reads of a want are worth one question.
type arrangement struct {
	order []int32 // reads by where they lie
	runs  []int32 // by read: where its run begins in order; -1: it is read alone
}

// arrange finds the runs of a want. What cannot be told of is left to whoever reads it alone.
func (q *wantAhead) arrange() *arrangement {
	s, n := q.want.job.snapshot, len(q.reads)
	r, extents := &arrangement{runs: make([]int32, n)}, make([]dataset.Extent, n)
	var room [512]byte
	for at := range q.reads {
		r.runs[at] = -1
		if sample, err := s.At(int(q.want.assembly.sampleAt(at).Index), room[:]); err == nil {
			if e, whole := s.ExtentOf(&sample); whole {
				extents[at] = e
				r.order = append(r.order, int32(at))
			}
		}
	}
	slices.SortFunc(r.order, func(a, b int32) int {
		x, y := &extents[a], &extents[b]
		return cmp.Or(cmp.Compare(x.Object, y.Object), cmp.Compare(x.Begin, y.Begin), cmp.Compare(a, b))
	})
	for begin := 0; begin < len(r.order); {
		end, e := begin+1, extents[r.order[begin]]
		for end < len(r.order) && e.Join(extents[r.order[end]]) {
			end++
		}
		for _, at := range r.order[begin:end] {
			r.runs[at] = int32(begin)
		}
		begin = end
	}
	return r
}

// run are the reads that are worth one question with a read, in the order in which they lie.
func (r *arrangement) run(at int) []int32 {
	if r == nil || r.runs[at] < 0 {
		return nil
	}
	begin := r.runs[at]
	end := int(begin) + 1
	for end < len(r.order) && r.runs[r.order[end]] == begin {
		end++
	}
	return r.order[begin:end]
}

// pickRun is a read, and those beside it that have not begun, as far as there is room for them. mu is held.
func (a *readAhead) pickRun(q *wantAhead, at int) []*fileAhead {
	if q.joins == nil && q.want.job.joins {
		q.joins = q.arrange()
	}
	f := &q.reads[at]
	if !a.start(q, at) {
		return nil
	}
	run := q.joins.run(at)
	if len(run) < 2 {
		return []*fileAhead{f}
	}
	all := make([]*fileAhead, 0, len(run))
	for _, k := range run {
		if int(k) == at || q.reads[k].state == aheadWaiting && a.used < a.budget && a.start(q, int(k)) {
			all = append(all, &q.reads[k])
		}
	}
	return all
}

// readRun reads several samples by one question. Where that fails of what is read they are left to workers.
func (a *readAhead) readRun(q *wantAhead, run []*fileAhead) {
	indices, bufs := make([]int, len(run)), make([][]byte, len(run))
	for k, f := range run {
		indices[k], bufs[k] = f.index, a.room()
	}
	err := q.want.job.snapshot.ReadTogether(q.ctx, indices, bufs)
	if err != nil && q.ctx.Err() == nil && !dataset.IsOfServer(err) {
		err = errAlone
	}
	for k, f := range run {
		a.finish(q, f, bufs[k], err)
	}
}
