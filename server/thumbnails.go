package server

import (
	"context"
	"slices"
	"time"

	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/thumbnail"
)

// keepThumbnails keeps small pictures of a batch that was sent, if somebody looks at the job. Its slot is still lent.
func (t *stream) keepThumbnails(w *want) {
	job, now := t.shownAs(), time.Now()
	if !t.server.thumbnails.Begin(job, now) {
		return
	}
	set := &thumbnail.Set{Taken: now, Epoch: w.epoch, Rank: t.line.Rank(), Roots: t.job.roots}
	set.Pictures, set.Missing = thumbnail.Of(w.made.Header, w.made.Data)
	t.server.thumbnails.Put(job, set)
}

// shownAs is what watchers call the stream's job.
func (t *stream) shownAs() thumbnail.Key {
	return thumbnail.Key{Job: t.line.Job(), Plan: t.job.hash}
}

// Thumbnails are small pictures of a batch that was sent to a job, for one of Watchers: nobody sees what he may not
// read, nor has the node keep it. From then on more are kept for a while. Where there are none, missing says why.
func (s *Server) Thumbnails(ctx context.Context, job, plan string) (set *thumbnail.Set, missing string) {
	c, err := s.guard.RequireCaller(ctx)
	if err != nil {
		return nil, err.Error()
	}
	key := thumbnail.Key{Job: job, Plan: plan}
	roots := s.thumbnails.Roots(key)
	if len(roots) == 0 {
		return nil, "this node has no stream of the job"
	}
	if !mayReadAll(c, roots) {
		return nil, notReadable
	}
	set, full := s.thumbnails.Look(key, time.Now())
	switch {
	case full:
		return nil, "others look at as many jobs as this node shows pictures of"
	case set == nil:
		return nil, "this node has sent the job no batch since somebody looks"
	case !mayReadAll(c, set.Roots): // of a stream that has ended since
		return nil, notReadable
	}
	return set, set.Missing
}

const notReadable = "you may not read this job's data on this node"

func mayReadAll(c *admission.Caller, roots []string) bool {
	return !slices.ContainsFunc(roots, func(root string) bool { return c.CheckRoot(root, nil) != nil })
}
