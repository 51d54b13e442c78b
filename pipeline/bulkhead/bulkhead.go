// Package bulkhead keeps storage that does not answer from harming what lies elsewhere. The kernel gives a call on a
// hung file system back when it likes, or never, and the goroutine with it. So each call is noted with its root, the
// folder that it is about: one that takes long tells its owner, who may start another goroutine in place of the stuck
// one, up to a bound per root and in all; one that passes the deadline is given up, which marks its root sick. Calls on
// a sick root fail at once, until each call that was given up has come back well, or the probe that repeats it has. The
// package reads nothing but for its probes, and knows neither lists nor pictures.
//
// Goroutines: one while calls are in flight or a root is sick, which Close ends; one for each Do, and one for each
// probe. These two end when their call comes back: where the kernel gives none back, nobody waits for them.
package bulkhead

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options of Roots. The zero value works.
type Options struct {
	// Deadline is how long a call may take, or stand still where it tells that it goes on. Default 30 s.
	Deadline time.Duration
	// Places is how many reads of one root are in flight at once, those that do not come back included. Default 32.
	Places int
	// Replaced is how many stuck calls of all roots have their goroutine replaced at once. Default four times Places,
	// 1024 at most.
	Replaced int
	// Patience is after how long a call counts as stuck. Default 100 ms.
	Patience time.Duration
	// ProbeEvery is the least time between two probes of a sick root. Default 1 s.
	ProbeEvery time.Duration
}

func (o Options) withDefaults() Options {
	o.Deadline = cmp.Or(max(o.Deadline, 0), DefaultDeadline)
	o.Places = cmp.Or(max(o.Places, 0), 32)
	o.Replaced = cmp.Or(max(o.Replaced, 0), min(4*o.Places, 1024))
	o.Patience = min(cmp.Or(max(o.Patience, 0), 100*time.Millisecond), o.Deadline)
	o.ProbeEvery = cmp.Or(max(o.ProbeEvery, 0), time.Second)
	return o
}

// DefaultDeadline of Options: a server that takes over from another is there by then, as a rule.
const DefaultDeadline = 30 * time.Second

// maxCalls is how many calls of Do one root has in flight at once. More wait until one of them has come back.
const maxCalls = 64

// maxUnnamed is how many roots without a name are remembered that are at rest.
const maxUnnamed = 64

// Roots are the roots of a process. Its methods may be called by many goroutines at once.
type Roots struct {
	options   Options
	began     time.Time
	suspended atomic.Int64  // nanoseconds since then in which this process did not run
	quit      chan struct{} // closed by Close

	mountTable string // a file

	mu         sync.Mutex
	named      []*Root
	unnamed    map[string]*Root // by folder
	calls      map[*Call]struct{}
	replaced   int
	generation uint64 // how often a root has come back
	writtenOff int    // calls, see writeOff
	monitoring bool
	hurried    bool // calls in flight are given up soon
	closed     bool
	changed    []func(State)
	freed      []func()
	monitor    sync.WaitGroup
	telling    sync.Mutex // held while a change is told
}

// New returns Roots without a root.
func New(o Options) *Roots {
	return &Roots{
		options: o.withDefaults(), began: time.Now(), quit: make(chan struct{}), mountTable: mountTable, unnamed: map[string]*Root{}, calls: map[*Call]struct{}{},
	}
}

// Deadline is how long a call may take.
func (rs *Roots) Deadline() time.Duration { return rs.options.Deadline }

// Root is a folder that fails as a whole.
type Root struct {
	roots      *Roots
	name       string
	folder     string
	also       []string      // guarded by roots.mu
	places     atomic.Int64  // reads that have a place
	lost       atomic.Int64  // calls that were given up, and have one
	others     chan struct{} // has an element for each call of Do in flight
	sick       atomic.Bool
	generation atomic.Uint64
	lastRead   atomic.Int64 // see NoteRead

	// Guarded by roots.mu.
	why      func(folder string) error // see Explain
	since    time.Time
	timeouts uint64
	hung     []*hungCall // what the root has not answered since it is sick, in the order in which it was given up
	last     *HungError  // that was answered last
	probing  int         // probes in flight, of what is mounted now
	probed   int64       // when one began or ended

	mounts    string // where it lies, see mountsOf
	remounted int    // how often these changed
	looked    int64  // when a look at them began
	looking   bool   // one is under way
}

// newRoot returns a root that is well. rs.mu is held.
func newRoot(rs *Roots, name, folder string) *Root {
	r := &Root{roots: rs, name: name, folder: folder, others: make(chan struct{}, maxCalls)}
	r.generation.Store(rs.generation)
	return r
}

// Explain says what tells why storage in a folder does not answer, if anything is known. It is asked when a call is given
// up, and must neither block nor call what is here. What it says is kept: who comes to a sick root later hears it too.
func (r *Root) Explain(why func(folder string) error) {
	r.roots.mu.Lock()
	defer r.roots.mu.Unlock()
	r.why = why
}

// NoteRead tells that a read has ended well, of storage whose reads all end by themselves, as those from servers do: one
// that takes long is then its own trouble, and no call of the root is given up.
func (r *Root) NoteRead() { r.lastRead.Store(r.roots.now()) }

// Name of the root: the one it was added by, else its folder.
func (r *Root) Name() string { return r.name }

// Add names the root of a folder, and of all folders below it. Adding one twice does nothing.
func (rs *Roots) Add(name, folder string) *Root {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.named {
		if r.name == name && r.folder == folder {
			return r
		}
	}
	r := newRoot(rs, name, folder)
	rs.named = append(rs.named, r)
	return r
}

// Means says that a folder is the root's too: its own without links.
func (r *Root) Means(folder string) {
	r.roots.mu.Lock()
	defer r.roots.mu.Unlock()
	if folder != r.folder && !slices.Contains(r.also, folder) {
		r.also = append(r.also, folder)
	}
}

// Of is the root that a folder lies in, the innermost of several, and one of its own if it lies in none that was added.
func (rs *Roots) Of(folder string) *Root {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.innermost(folder); r != nil {
		return r
	}
	return rs.unnamedOf(folder)
}

// NamesOf are the roots that were added and that a folder lies in, the innermost first. Storage is not asked.
func (rs *Roots) NamesOf(folder string) (names []string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	lengths := map[string]int{}
	for _, r := range rs.named {
		for _, f := range append([]string{r.folder}, r.also...) {
			if holds(f, folder) {
				lengths[r.name] = max(lengths[r.name], len(f))
			}
		}
	}
	return slices.SortedFunc(maps.Keys(lengths), func(a, b string) int {
		return cmp.Or(lengths[b]-lengths[a], strings.Compare(a, b))
	})
}

// Apart is a root of a folder's own, although it may lie in one that was added: for what is none of that root's data.
func (rs *Roots) Apart(folder string) *Root {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.unnamedOf(folder)
}

// innermost is the root that was added and that a folder lies in; nil if there is none. mu is held.
func (rs *Roots) innermost(folder string) *Root {
	var best *Root
	length := -1
	for _, r := range rs.named {
		for _, f := range append([]string{r.folder}, r.also...) {
			if len(f) > length && holds(f, folder) {
				best, length = r, len(f)
			}
		}
	}
	return best
}

// unnamedOf is the root of a folder that was not added. mu is held.
func (rs *Roots) unnamedOf(folder string) *Root {
	if r := rs.unnamed[folder]; r != nil {
		return r
	}
	if len(rs.unnamed) >= maxUnnamed {
		maps.DeleteFunc(rs.unnamed, func(_ string, r *Root) bool { return r.rests() })
	}
	r := newRoot(rs, folder, folder)
	rs.unnamed[folder] = r
	return r
}

func holds(root, folder string) bool {
	if base, options, found := cutURL(root); found {
		name, others, _ := cutURL(folder)
		return options == others && strings.HasPrefix(name+"/", strings.TrimRight(base, "/")+"/")
	}
	below, err := filepath.Rel(root, folder)
	return err == nil && filepath.IsLocal(below)
}

// cutURL cuts an URL before its options; false of what is none.
func cutURL(folder string) (name, options string, found bool) {
	if !strings.Contains(folder, "://") {
		return folder, "", false
	}
	at := strings.LastIndex(folder, "?")
	for ; at > 0 && !strings.Contains(folder[at:], "="); at = strings.LastIndex(folder[:at], "?") {
	}
	if at < 0 {
		return folder, "", true
	}
	return folder[:at], folder[at:], true
}

// rests reports whether nothing is known of a root that must be kept. roots.mu is held.
func (r *Root) rests() bool {
	return r.places.Load() == 0 && r.lost.Load() == 0 && len(r.others) == 0 && !r.sick.Load() && r.probing == 0
}

// OnChange has tell called, one call at a time, when a root turns sick and when it is back. It must not block.
func (rs *Roots) OnChange(tell func(State)) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.changed = append(rs.changed, tell)
}

// OnFree has tell called when a root that had no place has one again, or turns sick. It must not block.
func (rs *Roots) OnFree(tell func()) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.freed = append(rs.freed, tell)
}

// Hurry gives calls in flight up that have taken two seconds, and those that are to come as soon as they have: their
// owner ends.
func (rs *Roots) Hurry() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.hurried = true
}

// Close ends the goroutine that looks after calls. Calls go on, and are given up no more.
func (rs *Roots) Close() {
	rs.mu.Lock()
	if !rs.closed {
		rs.closed = true
		close(rs.quit)
	}
	rs.mu.Unlock()
	rs.monitor.Wait()
}

// State is how a root is.
type State struct {
	// Name and Folder of the root.
	Name, Folder string
	// Sick: it does not answer. Since tells since when, Cause which call told.
	Sick  bool
	Since time.Time
	Cause *HungError
	// Calls are in flight, Stuck of which have taken longer than Options.Patience; Oldest is how long the oldest has,
	// of those that the root did not come back without.
	Calls, Stuck int
	Oldest       time.Duration
	// Timeouts are the calls that were given up since the start.
	Timeouts uint64
}

// States tells how the roots are: those with names in the order of these, and others that are sick or have calls in
// flight.
func (rs *Roots) States() []State {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	at := map[*Root]*State{}
	for _, r := range rs.named {
		at[r] = r.state()
	}
	for c := range rs.calls {
		if at[c.root] == nil {
			at[c.root] = c.root.state()
		}
		at[c.root].count(c, rs.options.Patience)
	}
	for _, r := range rs.unnamed {
		if at[r] == nil && r.sick.Load() {
			at[r] = r.state()
		}
	}
	var all []State
	for _, s := range at {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b State) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Delay is the age of the oldest call in flight.
func (r *Root) Delay() (oldest time.Duration) {
	rs := r.roots
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for c := range rs.calls {
		if c.root == r && !c.writtenOff {
			oldest = max(oldest, c.age())
		}
	}
	return oldest
}

// state is a root's without its calls. roots.mu is held.
func (r *Root) state() *State {
	return &State{Name: r.name, Folder: r.folder, Sick: r.sick.Load(), Since: r.since, Cause: r.cause(), Timeouts: r.timeouts}
}

// count counts a call. roots.mu is held.
func (s *State) count(c *Call, patience time.Duration) {
	age := c.age()
	s.Calls++
	if age > patience {
		s.Stuck++
	}
	if !c.writtenOff {
		s.Oldest = max(s.Oldest, age)
	}
}

func (c *Call) age() time.Duration { return time.Duration(c.root.roots.now() - c.began.Load()) }

// now is nanoseconds since the beginning in which this process ran: see count.
func (rs *Roots) now() int64 { return int64(time.Since(rs.began)) - rs.suspended.Load() }
