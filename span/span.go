// Package span is how Feedwater tells OpenTelemetry what became of a batch: the names of spans and of what is said of
// them, trace context as text, and the exporter that the standard environment variables ask for. It knows no batches
// and no nodes; docs/tracing.md has the scheme.
//
// Goroutines: the SDK's, which send what has ended, from Open to Close, which waits for them. There are none where
// nothing is asked for.
package span

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// Names of spans, each the child of the one before; without nodes there are no attempts.
const (
	Batch   = "feedwater.batch"
	Attempt = "feedwater.attempt"
	Make    = "feedwater.make"
	Sample  = "feedwater.sample"
)

// Names of events: a batch is in the trainer's memory; a sample does not decode.
const (
	Ready  = "feedwater.ready"
	Broken = "feedwater.broken"
)

// Keys of attributes.
const (
	Job      = attribute.Key("feedwater.job")
	Rank     = attribute.Key("feedwater.rank")
	Epoch    = attribute.Key("feedwater.epoch")
	Position = attribute.Key("feedwater.position")
	Samples  = attribute.Key("feedwater.samples")
	Node     = attribute.Key("feedwater.node")
	Hedge    = attribute.Key("feedwater.hedge")
	Shared   = attribute.Key("feedwater.shared")
	Bytes    = attribute.Key("feedwater.bytes")
	Index    = attribute.Key("feedwater.index")
	File     = attribute.Key("feedwater.key")
	Op       = attribute.Key("feedwater.op")
	// Outcome is "done", "cancelled", "failed", or of a batch "unused"; Reason says why it is not the first.
	Outcome = attribute.Key("feedwater.outcome")
	Reason  = attribute.Key("feedwater.reason")
	// In seconds: for how long the loop was blocked for it; in a queue; reading files; making it; a core's.
	Wait        = attribute.Key("feedwater.wait_seconds")
	Queued      = attribute.Key("feedwater.queued_seconds")
	Read        = attribute.Key("feedwater.read_seconds")
	Made        = attribute.Key("feedwater.make_seconds")
	CoreSeconds = attribute.Key("feedwater.core_seconds")
)

// Outcomes.
const (
	Done      = "done"
	Cancelled = "cancelled"
	Failed    = "failed"
	Unused    = "unused"
)

// maxText bounds what others have written: names of files, errors. Bytes.
const maxText = 1 << 10

// Text is s as a collector takes it: valid UTF-8 of bounded length. One attribute that is not would have all spans sent
// with it refused.
func Text(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + " …"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
