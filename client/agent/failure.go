package agent

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/filename"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// failure is the error object of docs/agent.md.
type failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	*sampleError
	Field   string        `json:"field,omitempty"`
	Nearest string        `json:"nearest,omitempty"`
	Path    filename.Name `json:"path,omitempty"`
	Bytes   int           `json:"bytes,omitempty"`
	Nodes   []nodeState   `json:"nodes,omitempty"`
	// Of kind revision; see client.RevisionError.
	Unit        string `json:"unit,omitempty"`
	Pinned      uint32 `json:"pinned,omitempty"`
	Found       uint32 `json:"found,omitempty"`
	PinnedBuild string `json:"pinned_build,omitempty"`
	Build       string `json:"build,omitempty"`
}

// sampleError is a sample that does not decode.
type sampleError struct {
	Offset uint32        `json:"offset"`
	Index  uint64        `json:"index"`
	Key    filename.Name `json:"key,omitempty"`
	Op     string        `json:"op,omitempty"`
	Cause  string        `json:"cause,omitempty"`
	Node   string        `json:"node,omitempty"`
	// Substitute is the index of the sample in its place, if there is one.
	Substitute *uint64 `json:"substitute,omitempty"`
}

func newSampleError(e *pb.SampleError, addr string) sampleError {
	s := sampleError{Offset: e.Offset, Index: e.Index, Key: filename.Name(e.Key), Op: e.Op, Cause: clipMessage(e.Cause), Node: addr}
	if addr == node.Local {
		s.Node = ""
	}
	if e.Substituted {
		s.Substitute = &e.Substitute
	}
	return s
}

// toBrief is e without its texts, or with short ones.
func (e sampleError) toBrief(named bool) sampleError {
	const some = 256
	if !named {
		return sampleError{Offset: e.Offset, Index: e.Index, Substitute: e.Substitute}
	}
	e.Key, e.Cause = filename.Name(filename.Clip(string(e.Key), some)), filename.Clip(e.Cause, some)
	return e
}

// nodeState is how a node is, in words.
type nodeState struct {
	Addr  string `json:"addr"`
	State string `json:"state"`
	Error string `json:"error,omitempty"`
	Wants int    `json:"wants"`
}

// Error implements error.
func (f *failure) Error() string { return f.Message }

func (f *failure) toJSON() []byte {
	c := *f
	c.Message = clipMessage(c.Message)
	b, err := json.Marshal(&c)
	if err != nil || len(b) > maxPacket-64 {
		b, _ = json.Marshal(&failure{Kind: f.Kind, Message: c.Message})
	}
	return b
}

// roomError says that a batch needs a bigger slot.
type roomError struct{ bytes int }

func (e *roomError) Error() string {
	return fmt.Sprintf("a batch takes %d bytes, more than a slot", e.bytes)
}

// describeError makes the error object of any error. The order of the cases matters: an error of nodes wraps theirs.
func describeError(err error) *failure {
	var (
		f        *failure
		sample   *node.SampleError
		plan     *batch.PlanError
		address  *node.AddressError
		data     *node.DataError
		numerics *node.NumericsError
		other    *node.RevisionError
		access   *node.AccessError
		version  *node.VersionError
		room     *node.RoomError
		slot     *roomError
		stall    *client.StallError
		nodes    *client.NodesError
	)
	text := err.Error()
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &sample):
		e := newSampleError(sample.SampleError, sample.Node)
		return &failure{Kind: "sample", Message: text, sampleError: &e}
	case errors.As(err, &plan):
		return &failure{Kind: "plan", Message: text, Field: plan.Field, Nearest: plan.Nearest}
	case errors.As(err, &address):
		return &failure{Kind: "plan", Message: text, Field: "nodes"}
	case errors.As(err, &other):
		return &failure{
			Kind: "revision", Message: text, Unit: other.Unit, Pinned: other.Pinned, Found: other.Found,
			PinnedBuild: other.PinnedBuild, Build: other.Build, Nodes: nodeErrors(err),
		}
	case errors.As(err, &numerics):
		return &failure{Kind: "numerics", Message: text, Nodes: nodeErrors(err)}
	case errors.As(err, &access):
		return &failure{Kind: "access", Message: text, Nodes: nodeErrors(err)}
	case errors.As(err, &version):
		return &failure{Kind: "version", Message: text, Nodes: nodeErrors(err)}
	case errors.As(err, &data):
		return &failure{Kind: "data", Message: text, Path: filename.Name(data.Path), Nodes: nodeErrors(err)}
	case errors.As(err, &room):
		return &failure{Kind: "room", Message: text, Bytes: int(room.Bytes)}
	case errors.As(err, &slot):
		return &failure{Kind: "room", Message: text, Bytes: slot.bytes}
	case errors.As(err, &stall):
		return &failure{Kind: "stall", Message: text, Nodes: nodeErrors(err)}
	case errors.As(err, &nodes):
		return &failure{Kind: "data", Message: text, Nodes: nodeErrors(err)}
	}
	return &failure{Kind: "bug", Message: text}
}

// nodeErrors lists the nodes an error speaks of.
func nodeErrors(err error) []nodeState {
	var (
		stall *client.StallError
		nodes *client.NodesError
		list  []client.NodeError
		all   []nodeState
	)
	switch {
	case errors.As(err, &stall):
		list = stall.Nodes
	case errors.As(err, &nodes) && !nodes.Own():
		list = nodes.Nodes
	}
	for _, n := range list {
		s := nodeState{Addr: n.Addr, State: string(n.State)}
		if n.Err != nil {
			s.Error = clipMessage(n.Err.Error())
		}
		all = append(all, s)
	}
	return all
}

// noticeHandler sends what a fleet logs to the trainer's log.
type noticeHandler struct{ notice func(level, message string) }

func (h *noticeHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

func (h *noticeHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	level := "info"
	if r.Level >= slog.LevelWarn {
		level = "warning"
	}
	h.notice(level, b.String())
	return nil
}

func (h *noticeHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h *noticeHandler) WithGroup(string) slog.Handler { return h }

func failedPacket(id uint64, e *failure) []byte {
	return append(binary.LittleEndian.AppendUint64([]byte{kindFailed}, id), e.toJSON()...)
}
