package top

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

// column of a table. Those with a higher need for width are left out on narrow screens.
type column struct {
	name  string
	width int
	left  bool
	from  int // least width of the screen
}

// rowLine lays cells out by columns.
func (s Screen) rowLine(columns []column, cells []string) string {
	var b strings.Builder
	for i, c := range columns {
		if s.Width < c.from {
			continue
		}
		cell := clipText(cells[i], c.width)
		pad := strings.Repeat(" ", c.width-lipgloss.Width(cell))
		if c.left {
			cell += pad
		} else {
			cell = pad + cell
		}
		b.WriteString(" " + cell)
	}
	return b.String()
}

func (s Screen) headerLine(columns []column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	line := s.rowLine(columns, names)
	return dim.Render(line + strings.Repeat(" ", max(0, s.Width-lipgloss.Width(line))))
}

func clipText(s string, width int) string {
	if lipgloss.Width(s) <= width {
		return s
	}
	return lipgloss.NewStyle().MaxWidth(width-1).Render(s) + "…"
}

// nameWidth is the width of the first column: what the longest name takes, as far as there is room.
func (s Screen) nameWidth(columns []column, longest int) int {
	rest := 0
	for _, c := range columns[1:] {
		if s.Width >= c.from {
			rest += c.width + 1
		}
	}
	return min(max(s.Width-rest-1, 8), longest)
}

// longestName is the width of the longest name, or that of usual ones, so that what follows does not move with each.
func longestName[T any](all []T, name func(T) string) int {
	most := 22
	for _, one := range all {
		most = max(most, lipgloss.Width(name(one)))
	}
	return min(most, 48)
}

// jobLines are the table of jobs in so many lines, with the selected one in it; without a height, in all it takes.
func (s Screen) jobLines(jobs []*pb.JobStatus, room int) []string {
	columns := []column{
		{"JOB", 0, true, 0}, {"RANKS", 5, false, 0}, {"WASTED", 6, false, 0}, {"VERDICT", 10, true, 0}, {"IDLE", 5, false, 0}, {"WAIT", 5, false, 0},
		{"STEP ms", 7, false, 0}, {"IMG/S", 6, false, 0}, {"WOULD TAKE", 10, false, 100}, {"NODES", 7, false, 0}, {"RANKS HEARD", 11, false, 110},
	}
	columns[0].width = s.nameWidth(columns, longestName(s.Overview.Jobs, s.Overview.Title))
	lines := []string{s.headerLine(columns)}
	from, to := 0, len(jobs)
	if rows := max(room-2, 3); s.Height > 0 && len(jobs) > rows {
		from = min(max(s.Selected-rows/2, 0), len(jobs)-rows)
		to = from + rows
	}
	for i, j := range jobs[from:to] {
		wasted := "?"
		if j.Idle != nil {
			wasted = fmt.Sprintf("%.1f", pulse.WastedGPUs(j))
		}
		step := "?"
		if w := WorstRank(j); w != nil {
			step = fmt.Sprintf("%.0f", 1e3*w.StepP50)
		}
		line := s.rowLine(columns, []string{
			s.Overview.Title(j), fmt.Sprint(j.World), wasted, verdictStyle(j.Verdict).Render(j.Verdict), percentText(j.Idle), percentText(j.Wait), step,
			shortOr(j.Supply), shortOr(j.Demand), nodesOf(j), fmt.Sprintf("%d/%d", len(j.Ranks), j.World),
		})
		if from+i == s.Selected && s.Height > 0 {
			line = bold.Render("›") + line[1:]
		}
		lines = append(lines, line)
	}
	if to-from < len(jobs) {
		lines = append(lines, dim.Render(fmt.Sprintf(" … %d more above, %d below", from, len(jobs)-to)))
	}
	return lines
}

// nodesOf is nodes there and, if they should be others, wanted.
func nodesOf(j *pb.JobStatus) string {
	if j.NodesWanted != nil && *j.NodesWanted != j.Nodes {
		return fmt.Sprintf("%d→%d", j.Nodes, *j.NodesWanted)
	}
	return fmt.Sprint(j.Nodes)
}

func (s Screen) rankLines(j *pb.JobStatus) []string {
	columns := []column{
		{"RANK", 4, false, 0}, {"HOST", 14, true, 0}, {"STEP", 8, false, 0}, {"IDLE", 5, false, 0}, {"WAIT", 5, false, 0},
		{"STEP p50/p99 ms", 15, false, 0}, {"WAIT p50/p99", 12, false, 0}, {"READY", 7, false, 0}, {"STATE", 24, true, 100},
	}
	lines := []string{s.headerLine(columns)}
	for _, r := range j.Ranks {
		step := fmt.Sprint(r.Step)
		if r.Step >= 1<<32 { // of an epoch whose length is not known
			step = fmt.Sprintf("e%d", r.Step>>32)
		}
		lines = append(lines, s.rowLine(columns, []string{
			fmt.Sprint(r.Rank), r.Host, step, percentText(r.Idle), percentText(&r.Wait),
			fmt.Sprintf("%.0f/%.0f", 1e3*r.StepP50, 1e3*r.StepP99), fmt.Sprintf("%.0f/%.0f", 1e3*r.WaitP50, 1e3*r.WaitP99),
			fmt.Sprintf("%d/%d", r.Ready, r.Window), stateText(r),
		}))
		if strip := timelineText(r.Attempts, s.Width-12); strip != "" {
			lines = append(lines, "      wants "+strip)
		}
		if did := effortText(r.Effort); did != "" {
			lines = append(lines, "      "+did)
		}
	}
	return lines
}

func stateText(r *pb.RankStatus) string {
	switch {
	case r.Blocked != nil:
		return bad.Render("blocked for " + r.Blocked.AsDuration().Round(time.Second).String())
	case r.Silent != nil:
		return fair.Render("silent for " + r.Silent.AsDuration().Round(time.Second).String())
	}
	return ""
}

// effortText is what was done to have batches in time; empty: nothing.
func effortText(e *pb.Effort) string {
	if e.GetMoves()+e.GetHedges()+e.GetMissed()+e.GetExtra() == 0 {
		return ""
	}
	return fmt.Sprintf("moved %d, hedged %d (%d won), deadlines missed %d, extra work %.1f %%",
		e.Moves, e.Hedges, e.HedgesWon, e.Missed, 100*float64(e.Extra)/float64(max(e.Samples, 1)))
}

// marks are what attempts look like, by state.
var marks = map[string]string{"out": "·", "done": "■", "cancelled": "x", "failed": "!"}

// timelineText is the latest attempts, each as the letter of its node; capitals are hedges, and what did not arrive is
// marked.
func timelineText(attempts []*pb.Attempt, width int) string {
	var b strings.Builder
	names := map[string]int{}
	for _, a := range attempts[max(0, len(attempts)-width):] {
		k, ok := names[a.Node]
		if !ok {
			k = len(names)
			names[a.Node] = k
		}
		mark := marks[a.State]
		if a.State == "done" {
			mark = string(rune('a' + k%26))
		}
		if a.Hedge {
			mark = strings.ToUpper(mark)
		}
		b.WriteString(mark)
	}
	return b.String()
}

func (s Screen) nodeLines() []string {
	if len(s.Overview.Nodes) == 0 {
		return nil
	}
	columns := []column{
		{"NODE", 0, true, 0}, {"STATE", 10, true, 0}, {"CORES", 9, false, 0}, {"QUEUED s", 8, false, 0}, {"WANTS", 5, false, 0}, {"IMG/S", 6, false, 0},
		{"MB/S", 6, false, 0}, {"ms/IMG", 6, false, 0}, {"READ", 5, false, 90}, {"KEPT", 5, false, s.keptFrom()}, {"ERROR", 40, true, 130},
	}
	columns[0].width = s.nameWidth(columns, longestName(s.Overview.Nodes, (*pb.NodeStatus).GetAddr))
	lines := []string{s.headerLine(columns)}
	for _, n := range s.Overview.Nodes {
		cores := shortNumber(n.Cores)
		if n.EffectiveCores != nil {
			cores = fmt.Sprintf("%.1f/%s", min(*n.EffectiveCores, n.Cores), shortNumber(n.Cores))
		}
		cost := "?"
		if n.CoreSecondsPerSample != nil {
			cost = shortNumber(1e3 * *n.CoreSecondsPerSample)
		}
		style := good
		if n.State != "ready" {
			style = bad
		}
		lines = append(lines, s.rowLine(columns, []string{
			n.Addr, style.Render(n.State), cores, shortNumber(n.Queued), fmt.Sprint(n.Wants), shortNumber(n.SamplesPerSecond), shortNumber(n.BytesPerSecond / 1e6),
			cost, percentText(n.Read), percentText(n.Kept), n.Error,
		}))
		if n.Error != "" && s.Width < 130 {
			lines = append(lines, "   "+fair.Render(clipText(n.Error, s.Width-4)))
		}
		for _, scan := range n.Scans {
			lines = append(lines, "   "+fair.Render(clipText(scanText(scan), s.Width-4)))
		}
	}
	return lines
}

// keptFrom is the least width of a screen that says which share of pictures nodes had kept: of none where no node tells.
func (s Screen) keptFrom() int {
	if slices.ContainsFunc(s.Overview.Nodes, func(n *pb.NodeStatus) bool { return n.Kept != nil }) {
		return 100
	}
	return math.MaxInt
}

// scanText is how far a node is with the files of a folder.
func scanText(s *pb.Scan) string {
	return fmt.Sprintf("listing %s: %d files in %s, %s a second", s.Folder, s.Files, s.Running.AsDuration().Round(time.Second), shortNumber(s.FilesPerSecond))
}

func (s Screen) gpuLines() []string {
	if len(s.Overview.Gpus) == 0 {
		return nil
	}
	columns := []column{
		{"GPU", 3, false, 0}, {"HOST", 14, true, 0}, {"NAME", 22, true, 0}, {"BUSY", 5, false, 0}, {"MEMORY GB", 11, false, 0}, {"PROCS", 5, false, 0},
		{"HELD DOWN BY", 24, true, 90},
	}
	lines := []string{s.headerLine(columns)}
	for _, g := range s.Overview.Gpus {
		busy := percentText(g.Busy)
		memory := "?"
		if g.MemoryUsedBytes != nil && g.MemoryTotalBytes != nil {
			memory = fmt.Sprintf("%.1f/%.0f", float64(*g.MemoryUsedBytes)/1e9, float64(*g.MemoryTotalBytes)/1e9)
		}
		note := strings.Join(g.Throttles, ",")
		if g.Unknown != "" {
			note = g.Unknown
		}
		lines = append(lines, s.rowLine(columns, []string{fmt.Sprint(g.Index), g.Host, g.Name, busy, memory, fmt.Sprint(len(g.Processes)), note}))
	}
	return lines
}

func (s Screen) hostLines() []string {
	if len(s.Overview.Processes) == 0 {
		return nil
	}
	columns := []column{
		{"PROCESS", 22, true, 0}, {"CORES", 9, false, 0}, {"MEM MB", 6, false, 0}, {"HOST CPU", 8, false, 0}, {"I/O WAIT", 8, false, 0},
		{"READ MB/S", 9, false, 0}, {"NET MB/S", 8, false, 0}, {"UP", 9, false, 100},
	}
	lines := []string{s.headerLine(columns)}
	for _, p := range s.Overview.Processes {
		lines = append(lines, s.rowLine(columns, []string{
			fmt.Sprintf("%s %s", p.Kind, p.Host), fmt.Sprintf("%.1f/%s", p.BusyCores, shortNumber(p.Cores)), shortNumber(float64(p.ResidentBytes) / 1e6),
			percentText(p.HostBusy), percentText(p.HostIoWait), megabytesText(p.DiskReadBytesPerSecond), megabytesText(p.NetworkReceiveBytesPerSecond),
			p.Uptime.AsDuration().Round(time.Second).String(),
		}))
	}
	return lines
}

func megabytesText(bytes *float64) string {
	if bytes == nil {
		return "?"
	}
	return shortNumber(*bytes / 1e6)
}
