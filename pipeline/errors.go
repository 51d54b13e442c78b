package pipeline

import (
	"errors"
	"fmt"

	"github.com/feedwater-io/feedwater/filename"
)

// ErrCancelled ends a want whose Cancel was called before it was made.
var ErrCancelled = errors.New("the want was cancelled")

// ErrClosed ends the wants that a pipeline still holds when it is closed.
var ErrClosed = errors.New("the pipeline is closed")

// SampleError says that a completely read file does not decode, or breaks a limit of the plan. It depends on the
// sample's name and bytes alone, so every node comes to the same verdict.
type SampleError struct {
	// Offset is the sample's place in the batch.
	Offset int
	Index  uint64
	Key    string
	// Op is what refused it: "decode" or the name of a transform.
	Op    string
	Cause error
	// Substitute is the index of the sample that stands in its place, if Substituted.
	Substitute  uint64
	Substituted bool
}

func (e *SampleError) Error() string {
	return fmt.Sprintf("%s (index %d): %s: %v", filename.Text(e.Key), e.Index, e.Op, e.Cause)
}

func (e *SampleError) Unwrap() error { return e.Cause }

// ReadError says that this machine could not read a file as the snapshot has it: a trouble of this machine's storage
// and no verdict on the sample.
type ReadError struct {
	Index uint64
	Key   string // empty where the list of samples could not be read
	Cause error
}

func (e *ReadError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("read sample %d: %v", e.Index, e.Cause)
	}
	return fmt.Sprintf("read %s (index %d): %v", filename.Text(e.Key), e.Index, e.Cause)
}

func (e *ReadError) Unwrap() error { return e.Cause }

// RevisionError says that this build has another revision of a unit than the job pins, and that a file of the job needs
// it. It is no verdict on the sample: a node of the pinned revision makes it.
type RevisionError struct {
	Index uint64
	Key   string
	// Unit as package revision has it.
	Unit          string
	Pinned, Found uint32
}

func (e *RevisionError) Error() string {
	return fmt.Sprintf("%s (index %d) takes %s, of revision %d here and %d in the job", e.Key, e.Index, e.Unit, e.Found, e.Pinned)
}

// PanicError says that code of ours panicked on a sample. It is this machine's trouble and no verdict: a mistake in the
// assembly of one machine must not decide what a batch is. Another node is asked; if all panic, the run ends with this
// error, which names the sample.
type PanicError struct {
	Index uint64
	Key   string
	// Value is what it panicked with, Stack where.
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("a panic while %s (index %d) was made: %v; please report it, with that file", filename.Text(e.Key), e.Index, e.Value)
}

// RoomError says that a batch of samples of different sizes does not fit the room it was given. It takes Bytes at
// least: all of them, or what it had taken when Want.Charge said no.
type RoomError struct{ Bytes int }

func (e *RoomError) Error() string { return fmt.Sprintf("the batch takes %d bytes", e.Bytes) }
