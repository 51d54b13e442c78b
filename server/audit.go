package server

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"

	"github.com/feedwater-io/feedwater/filename"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
)

// AuditLine is one line of a node's audit log, as JSON: a job, when its last stream here has ended, or a call that was turned away.
type AuditLine struct {
	Time time.Time `json:"time"`
	// Event is "job" or "refused".
	Event string `json:"event"`
	// Identity is that of the token or the client certificate; empty where nobody has to say who he is. Host is the address it came from,
	// of a job the first one's.
	Identity string `json:"identity"`
	Host     string `json:"host"`

	// Job is what the trainer calls itself. Root, Path and Fingerprint name the data, Plan is the plan's hash.
	Job         string        `json:"job,omitempty"`
	Root        string        `json:"root,omitempty"`
	Path        filename.Name `json:"path,omitempty"`
	Fingerprint string        `json:"fingerprint,omitempty"`
	Plan        string        `json:"plan,omitempty"`
	// Streams it had here, and Seconds from the first one's begin to the last one's end.
	Streams int     `json:"streams,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	// What it got, and CoreSeconds that making batches took, sent or not. Failures are wants that had no batch.
	Batches     uint64  `json:"batches,omitempty"`
	Samples     uint64  `json:"samples,omitempty"`
	Bytes       uint64  `json:"bytes,omitempty"`
	CoreSeconds float64 `json:"core_seconds,omitempty"`
	Failures    uint64  `json:"failures,omitempty"`

	// Method that was called, the Code of the answer, and why; Unsaid is how many more calls were turned away since the line before.
	Method string `json:"method,omitempty"`
	Code   string `json:"code,omitempty"`
	Why    string `json:"why,omitempty"`
	Unsaid uint64 `json:"unsaid,omitempty"`
}

// audit keeps the books on jobs.
type audit struct {
	write   func(AuditLine)
	metrics *metrics
	some    *rate.Limiter // of lines on calls that were turned away

	mu     sync.Mutex
	jobs   map[auditKey]*record
	unsaid uint64
}

// auditKey tells jobs apart.
type auditKey struct{ identity, job, plan string }

// record is one job's. All of it is guarded by audit.mu.
type record struct {
	audit *audit
	key   auditKey
	open  int // streams
	began time.Time
	line  AuditLine
}

func newAudit(write func(AuditLine), m *metrics) *audit {
	if write == nil {
		write = func(AuditLine) {}
	}
	return &audit{write: write, metrics: m, some: rate.NewLimiter(1, 20), jobs: map[auditKey]*record{}}
}

// beginStream notes that a job has one more stream; the record has to be closed.
func (a *audit) beginStream(ctx context.Context, job string, j *Job) *record {
	plan := j.maker.Plan()
	line := AuditLine{Event: "job", Job: job, Root: plan.Source.Root, Path: plan.Source.Path, Fingerprint: plan.Source.Fingerprint, Plan: plan.Hash()}
	if c := admission.CallerOf(ctx); c != nil {
		line.Identity, line.Host = c.Identity, c.Host
	}
	key := auditKey{line.Identity, job, line.Plan}
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.jobs[key]
	if r == nil {
		r = &record{audit: a, key: key, began: time.Now(), line: line}
		a.jobs[key] = r
	}
	r.open++
	r.line.Streams++
	return r
}

// countMade counts what the pipeline gave back.
func (r *record) countMade(m *Made) {
	r.audit.mu.Lock()
	defer r.audit.mu.Unlock()
	r.line.CoreSeconds += m.Header.GetCoreSeconds()
	if m.Failure != nil && codes.Code(m.Failure.Code) != codes.Canceled {
		r.line.Failures++
	}
}

// countSent counts a batch.
func (r *record) countSent(h *pb.Header, bytes int) {
	r.audit.mu.Lock()
	defer r.audit.mu.Unlock()
	r.line.Batches++
	r.line.Bytes += uint64(bytes)
	r.line.Samples += samplesOf(h)
}

// closeStream ends a stream's part of a record; the last one writes the line.
func (r *record) closeStream() {
	a := r.audit
	a.mu.Lock()
	r.open--
	last := r.open == 0
	if last {
		delete(a.jobs, r.key)
	}
	a.mu.Unlock()
	if last {
		r.line.Time = time.Now()
		r.line.Seconds = r.line.Time.Sub(r.began).Seconds()
		a.write(r.line)
	}
}

// writeRefusal tells of a call that was turned away, but not of each in a flood of them.
func (a *audit) writeRefusal(c *admission.Caller, method string, err error) {
	v := judge(err)
	a.metrics.refused.WithLabelValues(v.code.String()).Inc()
	a.mu.Lock()
	if !a.some.Allow() {
		a.unsaid++
		a.mu.Unlock()
		return
	}
	unsaid := a.unsaid
	a.unsaid = 0
	a.mu.Unlock()
	a.write(AuditLine{
		Time: time.Now(), Event: "refused", Identity: c.Identity, Host: c.Host,
		Method: filename.Brief(method), Code: v.code.String(), Why: err.Error(), Unsaid: unsaid,
	})
}
