package server

import (
	"context"
	"time"

	"github.com/feedwater-io/feedwater/server/thumbnail"
)

// keepThumbnails keeps small pictures of a batch that was sent, if somebody looks at the job. Its slot is still lent.
func (t *stream) keepThumbnails(w *want) {
	job, now := thumbnail.Key{Job: t.line.Job(), Plan: t.job.hash}, time.Now()
	if !t.server.thumbnails.Begin(job, now) {
		return
	}
	set := &thumbnail.Set{Taken: now, Epoch: w.epoch, Rank: t.line.Rank(), Roots: []string{t.job.maker.Plan().Source.Root}}
	set.Pictures, set.Missing = thumbnail.Of(w.made.Header, w.made.Data)
	t.server.thumbnails.Put(job, set)
}

// Thumbnails are small pictures of a batch that was sent to a job, for one of Watchers: nobody sees what he may not
// read. From then on more are kept for a while. Where there are none, missing says why.
func (s *Server) Thumbnails(ctx context.Context, job, plan string) (set *thumbnail.Set, missing string) {
	c, err := s.guard.RequireCaller(ctx)
	if err != nil {
		return nil, err.Error()
	}
	set, full := s.thumbnails.Look(thumbnail.Key{Job: job, Plan: plan}, time.Now())
	switch {
	case full:
		return nil, "others look at as many jobs as this node shows pictures of"
	case set == nil:
		return nil, "this node has sent the job no batch since somebody looks"
	}
	for _, root := range set.Roots {
		if c.CheckRoot(root, nil) != nil {
			return nil, "you may not read this job's data on this node"
		}
	}
	return set, set.Missing
}
