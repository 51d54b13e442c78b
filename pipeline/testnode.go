//go:build testnode

package pipeline

import "time"

// TestNode lets tests run nodes of fixed speed, and nodes that compute differently, on one machine. Only builds of tag
// testnode have its fields.
type TestNode struct {
	// SampleTime, if set, is the least that a worker takes for a sample.
	SampleTime time.Duration
	// Numerics, if set, is added to what the self-test measures.
	Numerics string
}

func (t TestNode) salt() string { return t.Numerics }

// prolongSample returns when a sample that was begun then has taken as long as it is to take.
func (t TestNode) prolongSample(begun time.Time) { time.Sleep(t.SampleTime - time.Since(begun)) }
