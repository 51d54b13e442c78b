package client

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/feedwater-io/feedwater/client/node"
)

// ErrClosed ends the wants that a fleet still holds when it is closed.
var ErrClosed = errors.New("the fleet is closed")

// NodeError is how a node is, and its last error.
type NodeError struct {
	Addr  string
	State NodeState
	// Err may be nil.
	Err error
}

func (e NodeError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s: %s", e.Addr, e.State)
	}
	return fmt.Sprintf("%s: %s: %v", e.Addr, e.State, e.Err)
}

// StallError says that no batch came from any node for too long.
type StallError struct {
	// After is how long was waited.
	After time.Duration
	Nodes []NodeError
}

func (e *StallError) Error() string {
	return fmt.Sprintf("no batch from any node for %s: %s", e.After.Round(time.Millisecond), list(e.Nodes))
}

// NodesError says that every node that is up has answered, and none can do what was asked.
type NodesError struct{ Nodes []NodeError }

func (e *NodesError) Error() string {
	if e.Own() {
		return node.OwnError(e.Nodes[0].Err).Error()
	}
	return "no node can: " + list(e.Nodes) + node.AdviceOnBuild(e)
}

// Own reports whether it is the error of this process's own pipeline, and there are no other nodes.
func (e *NodesError) Own() bool {
	return len(e.Nodes) == 1 && e.Nodes[0].Addr == node.Local && e.Nodes[0].Err != nil
}

// Unwrap gives the nodes' errors to errors.Is and errors.As.
func (e *NodesError) Unwrap() []error {
	var errs []error
	for _, n := range e.Nodes {
		if n.Err != nil {
			errs = append(errs, n.Err)
		}
	}
	return errs
}

func list(nodes []NodeError) string {
	if len(nodes) == 0 {
		return "there are no nodes"
	}
	lines := make([]string, len(nodes))
	for i, n := range nodes {
		lines[i] = n.Error()
	}
	return strings.Join(lines, "; ")
}

// NodeState is a node as a fleet sees it.
type NodeState string

// The states.
const (
	Unused     NodeState = "unused"     // one of more than this trainer needs: it holds no stream to it
	Connecting NodeState = "connecting" // not heard of yet
	Scanning   NodeState = "scanning"   // it lists the data set's files, and answers then
	Ready      NodeState = "ready"
	Busy       NodeState = "busy"     // it asked to be left alone for a while
	Silent     NodeState = "silent"   // it holds wants and says nothing
	Doubted    NodeState = "doubted"  // it failed of late: others go first
	Draining   NodeState = "draining" // it shuts down
	LeftOut    NodeState = "left out" // other data, other numerics, or it refused
	Down       NodeState = "down"
)
