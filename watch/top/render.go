package top

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch"
	"github.com/feedwater-io/feedwater/watch/pulse"
	"github.com/feedwater-io/feedwater/watch/verdict"
)

// Screen is what is to be seen.
type Screen struct {
	Overview *watch.Overview
	Width    int
	Height   int // 0: as much as there is
	Selected int // job, among those that the filter leaves
	// Open shows the selected job alone, with its ranks; without a Height, below all jobs.
	Open bool
	// Filter leaves the jobs that have it in their name or verdict, in whatever case. Typing: it is being typed.
	Filter   string
	Typing   bool
	Interval time.Duration
	// Version of this program.
	Version string
}

var (
	bold = lipgloss.NewStyle().Bold(true)
	dim  = lipgloss.NewStyle().Faint(true)
	head = lipgloss.NewStyle().Bold(true).Reverse(true)
	bad  = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Red)
	good = lipgloss.NewStyle().Foreground(lipgloss.Green)
	fair = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
)

// minWidth is what lines are laid out for at least.
const minWidth = 60

// Render lays a screen out. No line is wider than the screen.
func Render(s Screen) string {
	s.Width = max(s.Width, minWidth)
	lines := []string{s.titleLine(), ""}
	p := s.Overview
	for _, e := range p.Errors {
		lines = append(lines, bad.Render(" "+e.Addr)+" "+e.Error)
	}
	rest := s.partLines()
	jobs := s.jobs()
	switch {
	case len(p.Jobs) == 0:
		lines = append(lines, s.emptyLines()...)
	case len(jobs) == 0:
		lines = append(lines, fmt.Sprintf(" None of %s has “%s” in its name or verdict.", countText(len(p.Jobs), "job"), s.Filter))
	default:
		s.Selected = min(max(s.Selected, 0), len(jobs)-1)
		lines = append(lines, s.summaryLines(jobs[s.Selected])...)
		lines = append(lines, "")
		if s.Open && s.Height > 0 {
			lines = append(lines, dim.Render(fmt.Sprintf(" job %d of %d, esc shows all", s.Selected+1, len(jobs))))
		} else {
			lines = append(lines, s.jobLines(jobs, s.Height-len(lines)-1-min(len(rest), sharedLines))...)
		}
		if s.Open {
			lines = append(lines, "")
			lines = append(lines, s.rankLines(jobs[s.Selected])...)
		}
	}
	lines = append(lines, rest...)
	if s.Height > 0 {
		lines = s.cutLines(lines)
	}
	for i, l := range lines {
		lines[i] = lipgloss.NewStyle().MaxWidth(s.Width).Render(l)
	}
	return strings.Join(lines, "\n")
}

// sharedLines is how many lines of nodes, GPUs and machines a long list of jobs leaves room for.
const sharedLines = 8

// jobs are those that the filter leaves.
func (s Screen) jobs() []*pb.JobStatus {
	if s.Filter == "" {
		return s.Overview.Jobs
	}
	wanted := strings.ToLower(s.Filter)
	var left []*pb.JobStatus
	for _, j := range s.Overview.Jobs {
		if strings.Contains(strings.ToLower(s.Overview.Title(j)+"\n"+j.Verdict), wanted) {
			left = append(left, j)
		}
	}
	return left
}

// partLines are nodes, GPUs and machines.
func (s Screen) partLines() (lines []string) {
	for _, part := range [][]string{s.nodeLines(), s.gpuLines(), s.hostLines()} {
		if len(part) > 0 {
			lines = append(append(lines, ""), part...)
		}
	}
	return lines
}

// cutLines cuts what has no room, and says so.
func (s Screen) cutLines(lines []string) []string {
	keys := s.keysLine()
	room := s.Height - 1
	if room == 0 {
		return lines[:1]
	}
	if len(lines) > room {
		more := len(lines) - room + 1
		lines = append(lines[:max(room-1, 0)], dim.Render(fmt.Sprintf(" … %d more lines", more)))
	}
	for len(lines) < room {
		lines = append(lines, "")
	}
	return append(lines, keys)
}

// keysLine says which keys there are, or what is being typed.
func (s Screen) keysLine() string {
	switch {
	case s.Typing:
		return bold.Render(" filter: "+s.Filter+"▏") + dim.Render("   enter keep   esc all jobs")
	case s.Open:
		return dim.Render(" ↑↓ job   esc all jobs   q quit")
	case s.Filter != "":
		return dim.Render(" ↑↓ job   enter details   / filter: ") + bold.Render(s.Filter) + dim.Render("   esc all jobs   q quit")
	}
	return dim.Render(" ↑↓ job   enter details   / filter   q quit")
}

func (s Screen) titleLine() string {
	p := s.Overview
	left := fmt.Sprintf(" feedwater top   %s  %s", countText(len(p.Jobs), "job"), countText(len(p.Nodes), "node"))
	right := fmt.Sprintf("%s  every %s ", p.Time.Format("15:04:05"), s.Interval)
	gap := s.Width - lipgloss.Width(left) - lipgloss.Width(right)
	return head.Render(left + strings.Repeat(" ", max(gap, 1)) + right)
}

func countText(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (s Screen) emptyLines() []string {
	if len(s.Overview.Processes) > 0 {
		return []string{" No job is running: nodes wait for trainers."}
	}
	return []string{
		bold.Render(" Nothing is running here."),
		"",
		" Trainers of this user and machine are found by themselves, as soon as a",
		" feedwater.Loader has given its first batch. To look at nodes, name them:",
		"",
		"   feedwater top HOST:7070 …",
	}
}

// summaryLines is the first thing to read: what it costs, why, what to do, who is worst.
func (s Screen) summaryLines(j *pb.JobStatus) []string {
	lines := []string{fmt.Sprintf(" %s  %s  %s  %s", bold.Render(s.Overview.Title(j)), countText(int(j.World), membersText(j)), verdictStyle(j.Verdict).Render(strings.ToUpper(j.Verdict)), costText(j))}
	if j.Cause != "" {
		lines = append(lines, s.wrapText("cause", j.Cause)...)
	}
	if j.Action != "" {
		lines = append(lines, s.wrapText("do", j.Action)...)
	}
	if w := WorstRank(j); w != nil && j.Verdict != verdict.Healthy {
		lines = append(lines, s.wrapText("worst", worstText(w, j))...)
	}
	return lines
}

func (s Screen) wrapText(name, text string) []string {
	var lines []string
	for i, part := range strings.Split(lipgloss.NewStyle().Width(s.Width-9).Render(text), "\n") {
		if i > 0 {
			name = ""
		}
		lines = append(lines, fmt.Sprintf(" %s %s", bold.Render(fmt.Sprintf("%-6s", name)), strings.TrimRight(part, " ")))
	}
	return lines
}

// membersText are what a job consists of, as far as is known: who tells its GPU's idle has one.
func membersText(j *pb.JobStatus) string {
	if j.Idle != nil {
		return "GPU"
	}
	return "rank"
}

// costText is what a job wastes, in words.
func costText(j *pb.JobStatus) string {
	switch {
	case j.Idle != nil:
		return fmt.Sprintf("idle %s = %.1f GPUs", percentText(j.Idle), pulse.WastedGPUs(j))
	case j.Wait != nil && *j.Wait >= 0.005:
		return fmt.Sprintf("idle unknown, at most the wait: %s = %.1f ranks", percentText(j.Wait), *j.Wait*float64(j.World))
	case j.Wait != nil:
		return "waits for nothing"
	}
	return "idle unknown"
}

// WorstRank is the rank that loses most; nil if none is known. Where some ranks know their idle, a wait that may be
// hidden is nothing to compare with it.
func WorstRank(j *pb.JobStatus) *pb.RankStatus {
	var w *pb.RankStatus
	for _, r := range j.Ranks {
		if r.StepP50 > 0 && (r.Idle != nil || j.Idle == nil) && (w == nil || lossOf(r) > lossOf(w)) {
			w = r
		}
	}
	return w
}

func lossOf(r *pb.RankStatus) float64 {
	if r.Idle != nil {
		return *r.Idle
	}
	return r.Wait
}

func worstText(r *pb.RankStatus, j *pb.JobStatus) string {
	wanted := ""
	if j.NodesWanted != nil {
		wanted = fmt.Sprintf("/%d", *j.NodesWanted)
	}
	where := ""
	if slices.ContainsFunc(j.Ranks, func(o *pb.RankStatus) bool { return o.Host != r.Host }) {
		where = " on " + r.Host
	}
	return fmt.Sprintf("rank %d%s: idle %s, wait p50/p99 %.0f/%.0f ms, ready %d/%d, nodes %d%s",
		r.Rank, where, percentText(r.Idle), 1e3*r.WaitP50, 1e3*r.WaitP99, r.Ready, r.Window, j.Nodes, wanted)
}

func verdictStyle(v string) lipgloss.Style {
	switch v {
	case verdict.Healthy:
		return good
	case verdict.DataBound:
		return bad
	case verdict.NotData:
		return fair
	}
	return dim
}

// percentText is a share for people; "?" is unknown, never 0.
func percentText(share *float64) string {
	if share == nil || math.IsNaN(*share) {
		return "?"
	}
	return fmt.Sprintf("%.0f %%", 100**share)
}

// shortNumber is a number in at most five characters.
func shortNumber(v float64) string {
	switch {
	case v >= 9.95e8:
		return fmt.Sprintf("%.1fG", v/1e9)
	case v >= 9.95e5:
		return fmt.Sprintf("%.1fM", v/1e6)
	case v >= 9995:
		return fmt.Sprintf("%.0fk", v/1e3)
	case v >= 10 || v == 0:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

func shortOr(v *float64) string {
	if v == nil {
		return "?"
	}
	return shortNumber(*v)
}
