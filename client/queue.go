package client

// queue are the wants of a fleet. It belongs to the fleet's goroutine.
type queue struct {
	all     map[*Want]struct{}
	waiting []*Want // not at a node
	seq     uint64
}

func newQueue() *queue { return &queue{all: map[*Want]struct{}{}} }
