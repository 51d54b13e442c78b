package node

import (
	"errors"
	"fmt"
	"strings"

	"github.com/feedwater-io/feedwater/client/membership"
	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline/revision"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// ErrCancelled ends a want that was cancelled.
var ErrCancelled = errors.New("the want was cancelled")

// DataError says that data is missing, empty, has changed on disk, or is not the same on all nodes.
type DataError struct {
	// Path is what was looked for, as far as known.
	Path    string
	Message string
	// Differs is set where the data is there and not what others have, or what the plan pins. A list of it may be old.
	Differs bool
}

func (e *DataError) Error() string { return e.Message }

// TableError says that a node has not the table that a plan names.
type TableError struct {
	// Table is its SHA-256.
	Table, Message string
}

func (e *TableError) Error() string { return e.Message }

// NumericsError says that nodes compute other pixels than those that the job began with.
type NumericsError struct {
	// Pinned is what the job needs, Found what the node has.
	Pinned, Found string
	Message       string
}

func (e *NumericsError) Error() string { return e.Message }

// RevisionError says that a node is of another build than the job began with, and that the difference is one of a unit
// that the plan, or a file of a batch, takes: it would make other bytes. Nodes of the job's revision go on with it.
type RevisionError struct {
	// Unit is the part of the code, as "codec/png".
	Unit string
	// Pinned is the job's revision of it, which PinnedBuild had; Found is that of Build. 0: it has no such unit.
	Pinned, Found      uint32
	PinnedBuild, Build string
	Message            string
}

func (e *RevisionError) Error() string { return e.Message }

// AdviceOnBuild is what can be done about an error that a *RevisionError is part of; empty for others.
func AdviceOnBuild(err error) string {
	return adviceOnBuild(err, "nodes of build", "with the nodes there are, and")
}

func adviceOnBuild(err error, build, with string) string {
	var e *RevisionError
	if !errors.As(err, &e) || e.Pinned == 0 && e.PinnedBuild == "" {
		return ""
	}
	return fmt.Sprintf("; the job goes on with %s; %s other bytes from here on, "+
		"it does by load_state_dict(state, strict=False), in Go from a state without Revisions and Numerics", e.sameBytes(build), with)
}

// sameBytes is what makes the bytes that the job began with. Nodes of before revisions serve nobody who knows
// revisions.
func (e *RevisionError) sameBytes(build string) string {
	if e.PinnedBuild == revision.BeforeRevisions {
		return "the release of Feedwater that its state is of, here and on nodes"
	}
	return fmt.Sprintf("%s %s, or of another that has revision %d of %s", build, e.PinnedBuild, e.Pinned, e.Unit)
}

// OwnError is an error of this process's own pipeline where there are no nodes, in words that speak of none.
func OwnError(err error) error {
	var e *RevisionError
	if !errors.As(err, &e) {
		return err
	}
	own := *e
	for _, subject := range []string{"this node has", "that node has"} {
		own.Message = strings.Replace(own.Message, subject, "this process has", 1)
	}
	own.Message += adviceOnBuild(e, "Feedwater of build", "with")
	return &own
}

// NameOf names a node for messages, by its address.
func NameOf(addr string) string {
	if addr == Local {
		return addr
	}
	return "node " + addr
}

// VersionError says that a node and this side do not speak the same protocol.
type VersionError struct{ Message string }

func (e *VersionError) Error() string { return e.Message }

// AccessError says that a node and this side do not trust each other, or that the node does not allow what was asked
// for.
type AccessError struct{ Message string }

func (e *AccessError) Error() string { return e.Message }

// SampleError is a sample that does not decode where the plan says raise. Every node would say the same.
type SampleError struct {
	*pb.SampleError
	// Node that said so.
	Node string
}

func (e *SampleError) Error() string {
	s := fmt.Sprintf("%s (index %d, place %d in the batch): %s: %s", filename.Name(e.Key), e.Index, e.Offset, e.Op, e.Cause)
	if e.Node != Local {
		s += " (said by node " + e.Node + ")"
	}
	return s
}

// RoomError says that a batch needs more memory than its want lent.
type RoomError struct{ Bytes uint64 }

func (e *RoomError) Error() string {
	return fmt.Sprintf("the batch takes %d bytes; lend that much", e.Bytes)
}

// AddressError says what is wrong with the address of a node.
type AddressError struct{ Addr, Message string }

func (e *AddressError) Error() string { return fmt.Sprintf("node %q %s", e.Addr, e.Message) }

// lostError ends the attempts of a stream that ended.
type lostError struct{ cause error }

func (e *lostError) Error() string {
	if e.cause == nil {
		return "the node ended the stream"
	}
	return "the stream to the node broke: " + e.cause.Error()
}

func (e *lostError) Unwrap() error { return e.cause }

func newLostError(cause error) error { return &lostError{cause} }

// ToAddressError is an error of package membership as an *AddressError.
func ToAddressError(err error) error {
	if t := (*membership.TargetError)(nil); errors.As(err, &t) {
		return &AddressError{t.Target, t.Message}
	}
	return err
}
