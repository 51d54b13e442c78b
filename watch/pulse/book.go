package pulse

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/feedwater-io/feedwater/control"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Registry is the lines of all trainers that this process hears. The zero value is ready. Its methods may be called from many goroutines
// at once.
type Registry struct {
	mu    sync.Mutex
	lines map[*Session]struct{}
	left  []leaving // oldest first
}

// leaving is a line that ended, and when.
type leaving struct {
	line *Session
	at   time.Time
}

const (
	// kept is how long a trainer that left is told of.
	kept = time.Minute
	// maxLeft bounds those.
	maxLeft = 1024
	// maxName bounds the names that trainers choose, in bytes.
	maxName = 128
	// often is the least time between two pulses that are listened to: trainers send one each 0.25 s.
	often = 20 * time.Millisecond
)

// Session is what one trainer's stream tells. A nil Line takes and tells nothing.
type Session struct {
	book      *Registry
	job, plan string

	mu      sync.Mutex
	rank    Rank
	steps   ring
	entered time.Time
	left    bool
}

// Rank is one rank's state. Steps are the latest ones, oldest first.
type Rank struct {
	Rank, World uint32
	Host        string
	Steps       []Step
	// Samples that one step takes from this rank.
	Samples uint32
	// Ready and Window count batches in the trainer's memory.
	Ready, Window uint32
	// Blocked is for how long the loop had been blocked in next when that was told; 0: it was not.
	Blocked time.Duration
	// Told is when the latest pulse came; zero: none did.
	Told time.Time
	// Entered is when the trainer's stream began.
	Entered time.Time
	// Left tells that the trainer's stream has ended.
	Left bool
}

// Job is a training run: what bears the same name and the same plan.
type Job struct {
	Name, Plan string
	// World is the number of ranks that the job has, as the latest pulse says; 0: unknown.
	World uint32
	// Ranks that this process hears, by number.
	Ranks []Rank
}

// Enter begins the line of a trainer's stream. job is any name, plan the plan's hash.
func (b *Registry) Enter(job, plan string, now time.Time) *Session {
	l := &Session{book: b, job: Clean(job), plan: plan, entered: now}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lines == nil {
		b.lines = map[*Session]struct{}{}
	}
	b.lines[l] = struct{}{}
	return l
}

// Report takes a pulse, unless it is of a job that cannot be. It does not keep p.
func (l *Session) Report(p *pb.Pulse, now time.Time) {
	if l == nil || p.GetRank() >= max(p.GetWorld(), 1) || !possible(p) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.rank.Told.IsZero() && now.Sub(l.rank.Told) < often {
		return
	}
	if p.Rank != l.rank.Rank || p.World != l.rank.World {
		l.steps = ring{}
	}
	l.rank = Rank{
		Rank: p.Rank, World: p.World, Host: Clean(p.Host), Samples: p.Samples, Ready: p.Ready, Window: p.Window,
		Blocked: max(p.GetBlocked().AsDuration(), 0), Told: now,
	}
	for _, s := range p.Steps[max(0, len(p.Steps)-KeptSteps):] {
		if s, ok := newStep(s); ok {
			l.steps.add(s)
		}
	}
}

// possible reports whether a job can have so many ranks, that take so many samples together.
func possible(p *pb.Pulse) bool {
	world := uint64(max(p.GetWorld(), 1))
	return world <= control.MaxRanks && world*uint64(p.GetSamples()) <= control.MaxSamples
}

// Leave ends a line. What it told is kept for a while.
func (l *Session) Leave(now time.Time) {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.left = true
	l.mu.Unlock()
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	l.book.left = append(l.book.left, leaving{l, now})
	l.book.forget(now)
}

// Job is the job's name as it is told to people.
func (l *Session) Job() string { return l.job }

// Rank is the number of the rank that told last; 0 before.
func (l *Session) Rank() uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rank.Rank
}

// forget drops lines that ended long ago, and the oldest of too many. mu is held.
func (b *Registry) forget(now time.Time) {
	for len(b.left) > 0 && (len(b.left) > maxLeft || now.Sub(b.left[0].at) > kept) {
		delete(b.lines, b.left[0].line)
		b.left = b.left[1:]
	}
}

func (l *Session) read() Rank {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rank
	r.Steps, r.Entered, r.Left = l.steps.all(), l.entered, l.left
	return r
}

// Jobs are all that is known, by name. A job whose trainers have all left is one no more; of several lines of one rank the one that
// told last counts.
func (b *Registry) Jobs(now time.Time) []Job {
	type key struct{ job, plan string }
	b.mu.Lock()
	b.forget(now)
	lines := make([]*Session, 0, len(b.lines))
	for l := range b.lines {
		lines = append(lines, l)
	}
	b.mu.Unlock()
	jobs := map[key]*Job{}
	for _, l := range lines {
		k := key{l.job, l.plan}
		if jobs[k] == nil {
			jobs[k] = &Job{Name: l.job, Plan: l.plan}
		}
		jobs[k].Ranks = append(jobs[k].Ranks, l.read())
	}
	all := make([]Job, 0, len(jobs))
	for _, j := range jobs {
		if j.settle() {
			all = append(all, *j)
		}
	}
	slices.SortFunc(all, func(a, b Job) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Plan, b.Plan)) })
	return all
}

// settle leaves one line of each rank, and none of another world; false if all have left.
func (j *Job) settle() bool {
	slices.SortFunc(j.Ranks, func(a, b Rank) int { // the one that counts first
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), b.Told.Compare(a.Told), b.Entered.Compare(a.Entered))
	})
	var latest time.Time
	for _, r := range j.Ranks {
		if !r.Told.Before(latest) && r.World > 0 {
			latest, j.World = r.Told, r.World
		}
	}
	j.Ranks = slices.DeleteFunc(j.Ranks, func(r Rank) bool { return j.World > 0 && r.World != j.World })
	j.Ranks = slices.CompactFunc(j.Ranks, func(a, b Rank) bool { return a.Rank == b.Rank && a.World > 0 })
	return slices.ContainsFunc(j.Ranks, func(r Rank) bool { return !r.Left })
}

// Clean makes a name that a peer chose fit for people's screens: short, one line, nothing that a terminal would obey.
func Clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
	if len(s) > maxName {
		s = strings.ToValidUTF8(s[:maxName], "") + "…"
	}
	return s
}
