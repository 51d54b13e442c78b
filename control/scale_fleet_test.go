package control_test

import (
	"math"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/feedwater-io/feedwater/control/pick"
	"github.com/feedwater-io/feedwater/control/share"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

const (
	crowdTold     = 3   // wants of a trainer of which a node tells whether it has begun with them, at most
	crowdTick     = 0.1 // seconds
	crowdSilent   = 1.0 // seconds, after which a node that holds wants is taken for dead
	crowdLooks    = 16  // wants, of which it is looked whether they come in time
	crowdHastens  = 2   // of them at a time
	crowdConnects = 1.0 // seconds
	crowdLeaves   = 30.0
)

// fleet is a rank's nodes, and its wants.
type fleet struct {
	crowd     *crowd
	job       *job
	members   map[*node]*member
	live      []*stream
	queue     []*want
	out       []*want // at nodes
	seq       uint64
	cost      float64
	took      pick.Median
	hedges    pick.HedgeBudget
	progress  float64
	granted   float64
	connected float64
	version   int
	needed    [4]int
	chosen    int // connections, when nodes were chosen last
	downs     int

	moves, batches int
	hedged, extra  int
}

// member is a node that a rank knows of.
type member struct {
	node    *node
	score   uint64
	stream  *stream
	down    bool
	surplus float64 // since when; negative: it is needed
}

// stream is a rank's to a node.
type stream struct {
	rank   *rank
	node   *node
	member *member

	speed    pick.Node
	trust    pick.Trust
	wants    []*attempt
	asked    float64 // when it got a want after it held none
	answered float64
	spoke    float64
	heard    uint64
	next     uint64
	hand     pick.Backlog
	leaving  bool

	// The node's.
	stake *stake
	line  *pulse.Session
	last  uint64
	open  []*attempt
}

// want is a batch.
type want struct {
	rank    *rank
	seq     uint64
	step    uint64
	due     float64
	out     []*attempt
	left    *stream
	moves   int
	missed  int
	arrived bool
}

// attempt is a want at a node.
type attempt struct {
	want      *want
	stream    *stream
	id        uint64
	sent      float64
	begun     float64 // as far as the trainer knows; negative: it has not
	expires   float64
	forecast  float64
	make      float64
	cancelled bool

	// The node's.
	entry   *share.Entry[*attempt]
	came    float64
	begins  float64
	left    int
	dropped bool
}

func seconds(s float64) *durationpb.Duration { return durationpb.New(time.Duration(s * 1e9)) }

func newRank(c *crowd, j *job, number int) *rank {
	return &rank{fleet: fleet{crowd: c, job: j, members: map[*node]*member{}, cost: pick.UnknownCost}, number: number}
}

// tick does what depends on time alone.
func (r *rank) tick() {
	r.crowd.after(crowdTick, r.tick)
	for _, s := range slices.Clone(r.live) {
		if now := r.crowd.now; len(s.wants) > 0 && now-math.Max(s.spoke, s.asked) > crowdSilent {
			s.member.down = true
			r.close(s)
		}
	}
	r.connect()
	r.tend()
	r.assign()
}

// close ends a stream; what the node had goes elsewhere.
func (r *rank) close(s *stream) {
	s.member.stream = nil
	r.live = slices.DeleteFunc(r.live, func(o *stream) bool { return o == s })
	s.node.streams = slices.DeleteFunc(s.node.streams, func(o *stream) bool { return o == s })
	s.line.End(r.crowd.time())
	for _, a := range slices.Clone(s.wants) {
		r.answered(a, false)
	}
}

// connect chooses nodes each second.
func (r *rank) connect() {
	now := r.crowd.now
	if r.version == r.crowd.version && now-r.connected < crowdConnects {
		return
	}
	r.connected = now
	if r.version != r.crowd.version {
		r.list()
	}
	copy(r.needed[1:], r.needed[:])
	r.needed[0] = pick.ConnectionCount(r.takes()*crowdBatch, r.pace.Seconds())
	n, downs := max(slices.Min(r.needed[:]), pick.ConnectionCount(0, 0)), 0
	for _, m := range r.members {
		if m.down {
			downs++
		}
	}
	if n != r.chosen || downs != r.downs {
		r.chosen, r.downs = n, downs
		r.choose(n)
	}
	for _, s := range slices.Clone(r.live) {
		m := s.member
		if m.surplus >= 0 && now-m.surplus > crowdLeaves {
			s.leaving = true
		}
		if s.leaving && len(s.wants) == 0 {
			r.close(s)
		}
	}
}

// list takes the nodes that there are now.
func (r *rank) list() {
	r.version, r.chosen = r.crowd.version, 0
	known := r.members
	r.members = make(map[*node]*member, len(r.crowd.nodes))
	for _, n := range r.crowd.nodes {
		m := known[n]
		if m == nil {
			m = &member{node: n, surplus: -1, score: pick.NodeScore(r.job.name+" "+strconv.Itoa(r.number), n.name)}
		}
		r.members[n] = m
	}
}

// choose connects to n nodes.
func (r *rank) choose(n int) {
	all := make([]*member, 0, len(r.crowd.nodes))
	for _, node := range r.crowd.nodes {
		if m := r.members[node]; m != nil {
			all = append(all, m)
		}
	}
	chosen := pick.ChooseSubset(all, n, func(m *member) uint64 { return m.score }, func(m *member) bool { return m.down })
	in := map[*member]bool{}
	for _, m := range chosen {
		in[m] = true
		m.surplus = -1
		if m.stream == nil && !m.down {
			r.join(m)
		} else if m.stream != nil {
			m.stream.leaving = false
		}
	}
	for _, m := range all {
		if !in[m] && m.surplus < 0 {
			m.surplus = r.crowd.now
		}
	}
}

// join opens a stream.
func (r *rank) join(m *member) {
	s := &stream{rank: r, node: m.node, member: m, answered: r.crowd.now, spoke: r.crowd.now, stake: m.node.stake(r.job.name)}
	m.stream = s
	s.line = m.node.book.OpenSession(r.job.name, "plan", r.crowd.time())
	m.node.streams = append(m.node.streams, s)
	r.live = append(r.live, s)
}

// pulse tells all nodes how the loop fares.
func (r *rank) pulse(p *pb.Pulse) {
	live := slices.Clone(r.live)
	r.crowd.send(func() {
		for _, s := range live {
			s.line.Report(p, r.crowd.time())
		}
	})
}

// noticed takes what a node tells of itself.
func (s *stream) noticed(c notice) {
	now := s.rank.crowd.now
	s.spoke, s.heard = now, c.heard
	s.speed.RecordReport(c.ahead, c.sample, now)
	for _, a := range s.wants {
		if a.begun < 0 && slices.Contains(c.begun[:], a.id) {
			a.begun = now
		}
	}
}

func (r *rank) want(w *want) {
	if len(r.queue)+len(r.out) == 0 {
		r.progress = r.crowd.now
	}
	r.seq++
	w.seq = r.seq
	r.queue = append(r.queue, w)
	r.hedges.AddWant()
}
