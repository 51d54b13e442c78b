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

// Registry is the sessions of all trainers that this process hears. The zero value is ready. Its methods may be called
// from many goroutines at once.
type Registry struct {
	mu       sync.Mutex
	sessions map[*Session]struct{}
	ended    []endedSession // oldest first
}

// endedSession is a session that ended, and when.
type endedSession struct {
	session *Session
	at      time.Time
}

const (
	// kept is how long a trainer that left is told of.
	keptFor = time.Minute
	// maxLeft bounds those.
	maxLeft = 1024
	// maxName bounds the names that trainers choose, in bytes.
	maxName = 128
	// often is the least time between two pulses that are listened to: trainers send one each 0.25 s.
	leastInterval = 20 * time.Millisecond
)

// Session is what one trainer's stream tells. A nil Session takes and tells nothing.
type Session struct {
	registry  *Registry
	job, plan string

	mu      sync.Mutex
	rank    Rank
	steps   ring
	entered time.Time
	ended   bool
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
	// IdleUnmeasured: the loop uses a GPU of which it cannot be measured how long it stands still for data.
	IdleUnmeasured bool
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

// OpenSession begins the session of a trainer's stream. job is any name, plan the plan's hash.
func (b *Registry) OpenSession(job, plan string, now time.Time) *Session {
	l := &Session{registry: b, job: CleanName(job), plan: plan, entered: now}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sessions == nil {
		b.sessions = map[*Session]struct{}{}
	}
	b.sessions[l] = struct{}{}
	return l
}

// Report takes a pulse, unless it is of a job that cannot be. It does not keep p.
func (s *Session) Report(p *pb.Pulse, now time.Time) {
	if s == nil || p.GetRank() >= max(p.GetWorld(), 1) || !isPossible(p) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.rank.Told.IsZero() && now.Sub(s.rank.Told) < leastInterval {
		return
	}
	if p.Rank != s.rank.Rank || p.World != s.rank.World {
		s.steps = ring{}
	}
	s.rank = Rank{
		Rank: p.Rank, World: p.World, Host: CleanName(p.Host), Samples: p.Samples, Ready: p.Ready, Window: p.Window, IdleUnmeasured: p.IdleUnmeasured,
		Blocked: max(p.GetBlocked().AsDuration(), 0), Told: now,
	}
	for _, step := range p.Steps[max(0, len(p.Steps)-KeptSteps):] {
		if step, ok := newStep(step); ok {
			s.steps.addStep(step)
		}
	}
}

// isPossible reports whether a job can have so many ranks, that take so many samples together.
func isPossible(p *pb.Pulse) bool {
	world := uint64(max(p.GetWorld(), 1))
	return world <= control.MaxRanks && world*uint64(p.GetSamples()) <= control.MaxSamples
}

// End ends a session. What it told is kept for a while.
func (s *Session) End(now time.Time) {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	s.registry.ended = append(s.registry.ended, endedSession{s, now})
	s.registry.dropEnded(now)
}

// Job is the job's name as it is told to people.
func (s *Session) Job() string { return s.job }

// Rank is the number of the rank that told last; 0 before.
func (s *Session) Rank() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rank.Rank
}

// dropEnded drops sessions that ended long ago, and the oldest of too many. mu is held.
func (b *Registry) dropEnded(now time.Time) {
	for len(b.ended) > 0 && (len(b.ended) > maxLeft || now.Sub(b.ended[0].at) > keptFor) {
		delete(b.sessions, b.ended[0].session)
		b.ended = b.ended[1:]
	}
}

func (s *Session) readRank() Rank {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rank
	r.Steps, r.Entered, r.Left = s.steps.all(), s.entered, s.ended
	return r
}

// Jobs are all that is known, by name. A job whose trainers have all left is one no more; of several sessions of one
// rank the one that told last counts.
func (b *Registry) Jobs(now time.Time) []Job {
	type key struct{ job, plan string }
	b.mu.Lock()
	b.dropEnded(now)
	sessions := make([]*Session, 0, len(b.sessions))
	for l := range b.sessions {
		sessions = append(sessions, l)
	}
	b.mu.Unlock()
	jobs := map[key]*Job{}
	for _, l := range sessions {
		k := key{l.job, l.plan}
		if jobs[k] == nil {
			jobs[k] = &Job{Name: l.job, Plan: l.plan}
		}
		jobs[k].Ranks = append(jobs[k].Ranks, l.readRank())
	}
	all := make([]Job, 0, len(jobs))
	for _, j := range jobs {
		if j.mergeRanks() {
			all = append(all, *j)
		}
	}
	slices.SortFunc(all, func(a, b Job) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Plan, b.Plan)) })
	return all
}

// mergeRanks leaves one session of each rank, and none of another world; false if all have left.
func (j *Job) mergeRanks() bool {
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

// CleanName makes a name that a peer chose fit for people's screens: short, one line, nothing that a terminal would
// obey.
func CleanName(s string) string {
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
