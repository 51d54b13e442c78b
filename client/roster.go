package client

import (
	"slices"
	"sync/atomic"
	"time"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// roster are the nodes of a fleet, and the sources that tell of them. It belongs to the fleet's goroutine, but for up.
type roster struct {
	job     *job
	events  nodeEvents
	members []*member
	live    []*member // those that have a stream
	sources []*source
	up      atomic.Int32 // streams that are open

	count     int       // samples of the latest want
	connected time.Time // when nodes were chosen last; zero: there are new ones
	needed    [4]int    // connections, by the last seconds
}

// nodeEvents are told what becomes of the nodes, on the fleet's goroutine.
type nodeEvents interface {
	joined(*session)
	lost(*member, error)
	noticed(*session, *pb.Notice, time.Time)
	// consider judges the answer of a node that wants to take part, now or later.
	consider(*member, *pb.OpenResponse, chan<- judgement)
}

// hasRemote reports whether there is a stream to another process.
func (r *roster) hasRemote() bool {
	return slices.ContainsFunc(r.live, func(m *member) bool { return m.node != r.job.options.Local })
}
