// Package audit writes what a node did for whom: one line for each job whose last stream has ended, one for calls that
// were turned away.
package audit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"

	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
)

// Line is one line of a node's audit log, as JSON: a job, when its last stream here has ended, or a call that was
// turned away.
type Line struct {
	Time time.Time `json:"time"`
	// Event is "job" or "refused".
	Event string `json:"event"`
	// Identity is that of the token or the client certificate; empty where nobody has to say who he is. Host is the
	// address it came from, of a job the first one's.
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

	// Method that was called, the Code of the answer, and why; Unsaid is how many more calls were turned away since the
	// line before.
	Method string `json:"method,omitempty"`
	Code   string `json:"code,omitempty"`
	Why    string `json:"why,omitempty"`
	Unsaid uint64 `json:"unsaid,omitempty"`
}

// Log follows jobs. Its methods, and those of its records, may be called from many goroutines at once.
type Log struct {
	write func(Line)
	some  *rate.Limiter // of lines on calls that were turned away

	mu     sync.Mutex
	jobs   map[jobKey]*Record
	unsaid uint64
}

// jobKey tells jobs apart.
type jobKey struct{ identity, job, plan string }

// Record is one job's. All of it is guarded by Log.mu.
type Record struct {
	log   *Log
	key   jobKey
	open  int // streams
	began time.Time
	line  Line
}

// New returns a log without jobs. Write is given its lines, and must not block for long; nil: nobody is.
func New(write func(Line)) *Log {
	if write == nil {
		write = func(Line) {}
	}
	return &Log{write: write, some: rate.NewLimiter(1, 20), jobs: map[jobKey]*Record{}}
}

// BeginStream notes that a job has one more stream; the record has to be closed. c is who called, nil within the
// process; root is where the plan's data was found.
func (l *Log) BeginStream(c *admission.Caller, job string, plan *pipeline.Plan, root string) *Record {
	line := Line{Event: "job", Job: job, Root: root, Path: plan.Source.Path, Fingerprint: plan.Source.Fingerprint, Plan: plan.Hash()}
	if plan.Source.Root == "" && root != "" { // it was found by its fingerprint: a path is none of this node's
		line.Path = ""
	}
	if c != nil {
		line.Identity, line.Host = c.Identity, c.Host
	}
	key := jobKey{line.Identity, job, line.Plan}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.jobs[key]
	if r == nil {
		r = &Record{log: l, key: key, began: time.Now(), line: line}
		l.jobs[key] = r
	}
	r.open++
	r.line.Streams++
	return r
}

// CountMade counts what the pipeline gave back: a batch, or a failure.
func (r *Record) CountMade(h *pb.Header, f *pb.Failure) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.line.CoreSeconds += h.GetCoreSeconds()
	if f != nil && codes.Code(f.Code) != codes.Canceled {
		r.line.Failures++
	}
}

// CountSent counts a batch of so many samples and bytes.
func (r *Record) CountSent(samples uint64, bytes int) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.line.Batches++
	r.line.Bytes += uint64(bytes)
	r.line.Samples += samples
}

// CloseStream ends a stream's part of a record; the last one writes the line.
func (r *Record) CloseStream() {
	l := r.log
	l.mu.Lock()
	r.open--
	last := r.open == 0
	if last {
		delete(l.jobs, r.key)
	}
	l.mu.Unlock()
	if last {
		r.line.Time = time.Now()
		r.line.Seconds = r.line.Time.Sub(r.began).Seconds()
		l.write(r.line)
	}
}

// WriteRefusal tells of a call that was turned away with a code, but not of each in a flood of them.
func (l *Log) WriteRefusal(c *admission.Caller, method string, code codes.Code, err error) {
	l.mu.Lock()
	if !l.some.Allow() {
		l.unsaid++
		l.mu.Unlock()
		return
	}
	unsaid := l.unsaid
	l.unsaid = 0
	l.mu.Unlock()
	l.write(Line{
		Time: time.Now(), Event: "refused", Identity: c.Identity, Host: c.Host,
		Method: filename.Brief(method), Code: code.String(), Why: err.Error(), Unsaid: unsaid,
	})
}
