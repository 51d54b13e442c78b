// Package node is one node as its client has it: how it is reached and trusted over gRPC, a stream of wants and
// answers, and how batches are written to where they belong while they arrive. What arrives is checked before it is
// used. A Stream has one goroutine that sends and one that receives, and Close waits for both.
package node

import (
	"context"
	"io"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Local is the Addr of a node that is the process's own pipeline.
const Local = "this process"

// Node is what makes batches: a process reached over gRPC (Dial), or the pipeline of this process. A Fleet calls Open,
// Fetch and Close from one goroutine, one after the other, and begins again with Open when the stream of Fetch has
// ended; Replay may be called at any time between.
type Node interface {
	// Addr names the node in errors and logs.
	Addr() string
	// Open checks a plan. Errors are gRPC status errors with the details that feedwater.proto lists.
	Open(context.Context, *pb.OpenRequest) (*pb.OpenResponse, error)
	// Replay makes samples again. Errors are as those of Open.
	Replay(context.Context, *pb.ReplayRequest) (*pb.ReplayResponse, error)
	// Fetch starts a stream of batches after a successful Open. notice is called from any goroutine with what the node
	// tells of itself, and must not block.
	Fetch(ctx context.Context, start *pb.Start, notice func(*pb.Notice)) (Stream, error)
	// Close gives up what Open and Replay hold. The stream is closed before.
	Close() error
}

// Troubled is a Node that says by itself what it waits for, in place of notices.
type Troubled interface {
	// Trouble is what it says, in words; empty: it waits for nothing. It must not block.
	Trouble() string
}

// A Progressor is a Node that tells which folders it lists while Open waits for that.
type Progressor interface {
	// Progress tells the scans that the Open of a plan waits for. It may be called while Open is.
	Progress(context.Context, *pb.ProgressRequest) (*pb.ProgressResponse, error)
}

// A Putter is a Node that can be given a table, a list of files that plans name by its SHA-256.
type Putter interface {
	// Put gives it so many bytes of text. Errors are as those of Open.
	Put(ctx context.Context, table string, bytes int64, text io.Reader) error
}

// Stream takes attempts. Its methods may be called from any goroutine and do not block for longer than a copy of one
// piece takes.
type Stream interface {
	// Send asks for a batch. An attempt is sent once.
	Send(*Attempt)
	// Cancel gives an attempt up; its Done comes soon, unless it came before.
	Cancel(*Attempt)
	// Pulse tells the node how the trainer's loop fares. It may be merged with others, and gets lost where the stream
	// is slow.
	Pulse(*pb.Pulse)
	// Heard is when the node last spoke. A node in this process always speaks now.
	Heard() time.Time
	// Ended is closed when the stream takes no more attempts and every attempt has its answer.
	Ended() <-chan struct{}
	// Err says why the stream ended: nil when the node ended it in order.
	Err() error
	// Close ends the stream and returns when Ended is closed.
	Close()
}

// Attempt is one want sent to one node. The node may write Dst from Send until it calls Done, and never after.
type Attempt struct {
	Name *pb.Name
	// Request says where the batch goes and when it is due. Too little room ends the attempt with *RoomError;
	// Answer.Imaged tells that Image was used.
	batch.Request
	// Deadline is after how long the attempt will be cancelled, for a node that would not hear of it; 0: never.
	Deadline time.Duration
	// Done is called exactly once, from any goroutine, also from within Send and Cancel. It must not block.
	Done func(Answer)

	// layout are the fields that the batch has to have, of one sample; none: whatever comes.
	Fields []*pb.Field
	// id is what the node calls the attempt in its notices; set by Send.
	ID uint64
	// hedge tells that another node has the want too.
	Hedge bool
	// why it is cancelled; set before Stream.Cancel.
	Reason pb.CancelReason
}

// Answer ends an attempt: with a batch, with the node's Failure, or with trouble on the way.
type Answer struct {
	// Header describes the batch, which is Data. Only if Failure and Err are nil.
	Header *pb.Header
	// Data is Dst, or what Grow gave, cut to the batch's size.
	Data []byte
	// Imaged tells that images went to Attempt.Image and are not in Data.
	Imaged bool
	// Failure is what the node says.
	Failure *pb.Failure
	// Err is ErrCancelled, *DamageError, *RoomError, or why the stream ended.
	Err error
}
