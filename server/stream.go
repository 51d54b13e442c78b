package server

import (
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/audit"
	"github.com/feedwater-io/feedwater/server/batchmem"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

// stream is one Fetch call. Its handler only watches: the call can be ended from this side alone by the handler's
// return, while receiving and sending may both be blocked.
type stream struct {
	server     *Server
	rpc        grpc.BidiStreamingServer[pb.FetchRequest, pb.FetchResponse]
	conn       *admission.MeteredConn // nil within the process
	account    *admission.Account
	quota      *batchmem.Quota
	goroutines sync.WaitGroup // receive and send
	wants      *wantSet
	hearing    hearing
	replaced   chan struct{} // closed when another trainer has taken over the job
	heard      atomic.Uint64 // id of the latest want
	began      time.Time
	failures   atomic.Int64 // wants that came to nothing, and were not paid for
	sending    atomic.Int64 // when the send in progress began, nanoseconds since began, which a clock that is set does not change; 0: none is

	// Of receive, and of others when it has ended.
	job        *Job
	record     *audit.Record
	pieceBytes int
	line       *pulse.Session
}
