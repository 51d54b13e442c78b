// Package batch defines what whoever wants a batch asks for: its name, where it goes, when it is due, and how its
// arrays lie in memory. Nodes, trainers and the pipeline share these definitions. It holds values and arithmetic, and
// imports nothing of ours.
package batch

import "time"

// Request is what a want says to whoever makes its batch. It is the same at every station: in the agent, in a fleet, at
// a node, in the pipeline.
type Request struct {
	// Dst takes the batch, fields placed as Place says. It belongs to whoever makes the batch until the want is done.
	Dst []byte
	// Grow, if set, is asked for more room where Dst is too small, since samples may differ in size. Where it is nil or
	// returns nil the want ends with an error that says how much room it takes.
	Grow func(bytes int) []byte
	// Image, if set, may be given the pixels of each sample in place of Dst, where the batch is made in this process:
	// height × width × 3 bytes, from any goroutine, in any order, once for each, of each view if there are several. pix
	// is valid until it returns. Only for plans whose samples are of one size.
	Image func(view, offset int, pix []byte)
	// Step is the one of the run that needs the batch: the same on all ranks, and larger for a later one. What a run
	// wants is made in this order, so that ranks which step together stay together. 0: unknown, which comes first, as
	// where there is one rank only.
	Step uint64
	// Due is when the batch is needed. Earlier is made first within a Step; the zero time comes before all others.
	Due time.Time
	// Begun, if set, is called once, from any goroutine, when whoever makes the batch takes up its first sample.
	// Another process says so in notices instead. It must not block.
	Begun func()
	// Traceparent, if set, is the W3C trace context that the spans of making the batch are below.
	Traceparent string
}
