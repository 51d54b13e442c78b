package metrics

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/pixelcache"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/snapshots"
)

// Load counts what a node has done, and says how it is.
type Load struct {
	// Wants is how many its streams hold now.
	Wants          atomic.Int64
	samples, bytes atomic.Int64
	sources        Sources
}

// NewLoad returns a load of nothing. Of the sources it reads Engine, Streams, Finder, Storage, Index and Pixels.
func NewLoad(s Sources) *Load { return &Load{sources: s} }

// CountSent counts a batch of so many bytes that was sent.
func (l *Load) CountSent(h *pb.Header, bytes int) {
	l.bytes.Add(int64(bytes))
	l.samples.Add(int64(SamplesOf(h)))
}

// Follow begins at a moment. What it returns is how the node is at a later one, with rates since the call before.
func (l *Load) Follow(now time.Time) func(now time.Time) []*pb.NodeStatus {
	before := l.readLoad(now)
	return func(now time.Time) []*pb.NodeStatus {
		after := l.readLoad(now)
		n := l.describeNode(before, after)
		before = after
		return []*pb.NodeStatus{n}
	}
}

// reading is a load as of one moment, in base units.
type reading struct {
	at                            time.Time
	samples, bytes, making, files float64
	index                         pipeline.IndexUse
	pixels                        pixelcache.Counts
}

func (l *Load) readLoad(now time.Time) reading {
	w := l.sources.Engine.Work()
	return reading{now, float64(l.samples.Load()), float64(l.bytes.Load()), w.CoreSeconds, w.ReadSeconds, l.sources.Index.Use(), l.sources.Pixels.Counts()}
}

// describeNode is this node, with rates between two readings.
func (l *Load) describeNode(before, after reading) *pb.NodeStatus {
	s := &l.sources
	n := &pb.NodeStatus{
		State: "ready", Cores: float64(s.Engine.Workers()), Queued: s.Engine.Queued(), Wants: uint32(max(l.Wants.Load(), 0)),
	}
	if s.Streams.IsDraining() {
		n.State = "draining"
	}
	n.Error = describeTrouble(s.Storage)
	n.Scans = s.Finder.ListScans(after.at, func(snapshots.Folder) bool { return true })
	seconds := after.at.Sub(before.at).Seconds()
	if seconds <= 0 {
		return n
	}
	making, samples := after.making-before.making, after.samples-before.samples
	n.SamplesPerSecond, n.BytesPerSecond = samples/seconds, (after.bytes-before.bytes)/seconds
	if n.Wants > 0 || making > 0 {
		cores := making / seconds
		n.EffectiveCores = &cores
	}
	if samples > 0 && making > 0 {
		cost := making / samples
		n.CoreSecondsPerSample = &cost
	}
	if files := after.files - before.files; files+making > 0 {
		read := files / (files + making)
		n.Read = &read
	}
	if decoded := after.index.Decoded() - before.index.Decoded(); decoded > 0 {
		missing := float64(after.index.MissingCopies-before.index.MissingCopies) / float64(decoded)
		n.MissingCopies = &missing
	}
	if hits, misses := after.pixels.Hits-before.pixels.Hits, after.pixels.Misses-before.pixels.Misses; hits+misses > 0 {
		kept := float64(hits) / float64(hits+misses)
		n.Kept = &kept
	}
	return n
}

// describeTrouble says what roots do not answer, in words; empty: none. Of a root on a server it says which object is waited for, and what the server
// answered last.
func describeTrouble(roots *bulkhead.Roots) string {
	var all []string
	for _, r := range roots.States() {
		trouble := dataset.Trouble(r.Folder, dataset.LongAsked)
		switch {
		case r.Sick && trouble != nil:
			all = append(all, fmt.Sprintf("the storage of %s does not answer for %s: %v", r.Name, time.Since(r.Since).Round(time.Second), trouble))
		case r.Sick:
			all = append(all, fmt.Sprintf("the storage of %s does not answer for %s", r.Name, time.Since(r.Since).Round(time.Second)))
		case trouble != nil:
			all = append(all, fmt.Sprintf("%s: %v", r.Name, trouble))
		}
	}
	return strings.Join(all, "; ")
}
