package client

import (
	"context"
	"io"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/feedwater-io/feedwater/client/membership"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/pipeline/revision"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Options of a Fleet.
type Options struct {
	// Plan says what to do to each sample: JSON, docs/plan.md.
	Plan string
	// Table, if set, is the list of files that the plan's source names; nodes that lack it are given it.
	Table *Table
	// Job is a name for logs and metrics.
	Job string
	// Nodes: host:port or unix:path for one; dns:name:port, dns+srv:name, file:path, k8s:namespace/service:port for all
	// that it stands for, now and later. docs/nodes.md.
	Nodes []string
	// Sources tell of further nodes.
	Sources []membership.Source
	// Local, if set, is one more node: the pipeline of this process.
	Local node.Node
	// Rank of this trainer in its job. It spreads the trainers of a job over the nodes of a large fleet.
	Rank int
	// Numerics and Fingerprint, if set, are those that the job began with: nodes of others are left out. Without these
	// and Revisions the job begins now: Open needs nodes of the same data, and the numerics and revisions of most of
	// them are the job's.
	Numerics, Fingerprint string
	// Revisions, if set, are those that the job began with: nodes that have others of what the plan uses are left out,
	// and those that have others of a codec are asked for nothing that takes it.
	Revisions *pb.Revisions
	// Stores are those that the data lay in when the job began, and the versions there, by digests of both as Fleet.Stores
	// tells them: nodes that read other versions of one of these are left out.
	Stores map[string]string
	// Build of this program, for people.
	Build string
	// Trainer is what this side does to batches. Nil: what this build does.
	Trainer *pb.Trainer
	// StartTimeout is how long to wait for the first batch, or for the first node, before giving up. 0: 900 s;
	// negative: for ever.
	StartTimeout time.Duration
	// Timeout is how long to wait when no further batch comes from any node. 0: 120 s; negative: for ever.
	Timeout time.Duration
	// Dialing says how to reach the nodes.
	Dialing node.DialOptions
	// Scaler, if set, is asked for nodes while there is none: a trainer that waits opens its plan there, again and
	// again.
	Scaler Scaler
	// Tell, if set, is told of the training loop as the nodes are: for what scales them. It is called from any
	// goroutine and must not block.
	Tell func(*pb.Pulse)
	// Dial makes a node of the address of one; nil: Dial with Dialing.
	Dial func(addr string) (node.Node, error)
	// Seed decides how much the waits between attempts to reach a node vary, so that a run can be repeated. 0: chance
	// does.
	Seed uint64
	// Tracer makes spans of batches and of attempts at them; nil: there are none. docs/tracing.md.
	Tracer trace.Tracer
	// Log is told of nodes that come, go and misbehave. Nil: nobody is.
	Log *slog.Logger
}

// Table is a list of files; see feedwater.proto, Put.
type Table struct {
	// SHA256 of the text, in hex.
	SHA256 string
	Bytes  int64
	// Text may be read by many goroutines at once, as long as the Fleet is open.
	Text io.ReaderAt
}

func (o Options) withDefaults() Options {
	o.StartTimeout = orDefault(o.StartTimeout, 900*time.Second)
	o.Timeout = orDefault(o.Timeout, 120*time.Second)
	if o.Trainer == nil {
		o.Trainer = newTrainer(o.Build)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func orDefault(d, standard time.Duration) time.Duration {
	switch {
	case d == 0:
		return standard
	case d < 0:
		return 1 << 62
	}
	return d
}

// dial makes a node of an address; its certificate is made out to serverName, if that is set and the options have no
// other.
func (o *Options) dial(addr, serverName string) (node.Node, error) {
	if o.Dial != nil {
		return o.Dial(addr)
	}
	return node.Dial(addr, o.Dialing.WithServerName(serverName))
}

// Scaler is told of trainers that wait for a node.
type Scaler interface {
	// Tell tells it that one waits. The error says why it has not heard that before ctx ended.
	Tell(context.Context, *pb.OpenRequest) error
	// Close gives up its connection.
	Close() error
}

// newTrainer tells of this side's build.
func newTrainer(build string) *pb.Trainer {
	own := revision.Build()
	return &pb.Trainer{Units: map[string]uint32{revision.Order: own[revision.Order], revision.LastHop: own[revision.LastHop]}, Build: build}
}
