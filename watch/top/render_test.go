package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch"
)

func starving() *pb.JobStatus {
	return &pb.JobStatus{
		Job: "rn50-a", World: 64, Idle: proto.Float64(0.31), Wait: proto.Float64(0.4), Verdict: "data-bound", Nodes: 9, NodesWanted: proto.Uint32(14),
		Supply: proto.Float64(12345), Demand: proto.Float64(18000),
		Cause: "node CPU: 139.7 of 144 cores busy; not storage 3 %, this host 18 %", Action: "9 → 14 nodes: 31 % → under 2 %",
		Ranks: []*pb.RankStatus{
			{Rank: 3, Host: "gpu-1", Step: 900, StepP50: 0.18, StepP99: 0.3, WaitP50: 0.05, WaitP99: 0.12, Idle: proto.Float64(0.2), Wait: 0.3, Ready: 3, Window: 16},
			{Rank: 5, Host: "gpu-2", Step: 900, StepP50: 0.18, StepP99: 0.3, Wait: 0.9, Window: 16}, // no meter: its wait may be hidden
			{
				Rank: 17, Host: "gpu-3", Step: 901, StepP50: 0.18, StepP99: 0.3, WaitP50: 0.055, WaitP99: 0.14, Idle: proto.Float64(0.34), Wait: 0.4, Window: 16,
				Blocked:  durationpb.New(3 * time.Second),
				Attempts: []*pb.Attempt{{Node: "a", State: "done"}, {Node: "b", State: "done", Hedge: true}, {Node: "a", State: "cancelled"}, {Node: "b", State: "failed"}, {Node: "a", State: "out"}},
				Effort:   &pb.Effort{Samples: 4000, Extra: 10, Moves: 3, Hedges: 2, HedgesWon: 1, Missed: 1},
			},
		},
	}
}

func picture() *watch.Overview {
	return &watch.Overview{
		Time: time.Date(2026, 1, 1, 14, 3, 22, 0, time.UTC),
		Jobs: []*pb.JobStatus{starving(), {Job: strings.Repeat("long", 40), World: 8, Verdict: "unknown"}},
		Nodes: []*pb.NodeStatus{
			{Addr: "cpu-1:7070", State: "ready", Cores: 16, EffectiveCores: proto.Float64(15.9), Kept: proto.Float64(0.5)},
			{Addr: "cpu-2:7070", State: "failed", Error: strings.Repeat("connection refused ", 20)},
		},
		Gpus:      []*pb.GpuStatus{{Host: "gpu-1", Name: "NVIDIA H200", Unknown: "no permission"}, {Index: 1, Busy: proto.Float64(0.69)}},
		Processes: []*pb.Process{{Kind: "node", Host: "cpu-1", Cores: 16}},
		Errors:    []watch.TargetError{{Addr: "cpu-3:7070", Error: "connection refused"}},
	}
}

func TestRenderTellsTheFirstThingsFirst(t *testing.T) {
	text := ansi.Strip(Render(Screen{Overview: picture(), Width: 120, Open: true, Interval: time.Second}))
	at := 0
	for _, want := range []string{
		"cpu-3:7070 connection refused", "rn50-a  64 GPUs  DATA-BOUND  idle 31 % = 19.8 GPUs", "cause  node CPU: 139.7 of 144", "do     9 → 14 nodes",
		"worst  rank 17 on gpu-3: idle 34 %, wait p50/p99 55/140 ms, ready 0/16, nodes 9/14", "9→14", "blocked for 3s", "wants aBx!·", "moved 3, hedged 2 (1 won), deadlines missed 1, extra work 0.2 %", "15.9/16", "NVIDIA H200", "69 %",
	} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("%q is not there, or not in its place:\n%s", want, text)
		}
		at += i
	}
	_, unknown, _ := strings.Cut(text, "longlong")
	if line, _, _ := strings.Cut(unknown, "\n"); !strings.Contains(line, "?") || strings.Contains(line, " 0 %") {
		t.Errorf("unknown is shown as a number: %s", line)
	}
}

// A node that lists files says how far it is, on screens of any width.
func TestScansAreTold(t *testing.T) {
	p := &watch.Overview{Nodes: []*pb.NodeStatus{{Addr: "cpu-1:7070", State: "ready", Scans: []*pb.Scan{
		{Folder: "imagenet/train", Files: 120000, FilesPerSecond: 4000, Running: durationpb.New(30 * time.Second)},
	}}}}
	for _, width := range []int{90, 200} {
		text := ansi.Strip(Render(Screen{Overview: p, Width: width, Interval: time.Second}))
		if want := "listing imagenet/train: 120000 files in 30s, 4000 a second"; !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// Which share of pictures nodes had kept is told where one tells, on screens that have room.
func TestKeptPicturesAreTold(t *testing.T) {
	p := &watch.Overview{Nodes: []*pb.NodeStatus{{Addr: "cpu-1:7070", State: "ready"}, {Addr: "cpu-2:7070", State: "ready"}}}
	told := func(width int) bool {
		text := ansi.Strip(Render(Screen{Overview: p, Width: width, Interval: time.Second}))
		return strings.Contains(text, "KEPT") && strings.Contains(text, "97 %")
	}
	if told(200) {
		t.Error("told of nodes that tell nothing")
	}
	if p.Nodes[1].Kept = proto.Float64(0.97); told(99) || !told(100) || !told(200) {
		t.Errorf("on screens of 99, 100 and 200 columns: %t, %t, %t", told(99), told(100), told(200))
	}
}

// Ranks that do not tell a GPU's idle may compute on CPUs: they are counted as ranks.
func TestRanksWithoutGPUsAreNotCalledSo(t *testing.T) {
	job := &pb.JobStatus{Job: "small", World: 2, Wait: proto.Float64(0.7), Verdict: "data-bound"}
	text := ansi.Strip(Render(Screen{Overview: &watch.Overview{Jobs: []*pb.JobStatus{job}}, Width: 120, Interval: time.Second}))
	if want := "small  2 ranks  DATA-BOUND  idle unknown, at most the wait: 70 % = 1.4 ranks"; !strings.Contains(text, want) {
		t.Errorf("%q is not in\n%s", want, text)
	}
}

func TestRenderKeepsToTheScreen(t *testing.T) {
	for _, width := range []int{60, 80, 100, 160, 300} {
		for _, height := range []int{0, 1, 10, 24, 100} {
			text := Render(Screen{Overview: picture(), Width: width, Height: height, Open: true, Interval: time.Second})
			lines := strings.Split(text, "\n")
			if height > 0 && len(lines) != height {
				t.Errorf("%d×%d: %d lines", width, height, len(lines))
			}
			for _, l := range lines {
				if n := lipgloss.Width(l); n > width {
					t.Errorf("%d×%d: a line of %d: %s", width, height, n, ansi.Strip(l))
				}
			}
		}
	}
}

func TestRenderWhenNothingRuns(t *testing.T) {
	text := ansi.Strip(Render(Screen{Overview: &watch.Overview{}, Width: 80, Interval: time.Second}))
	if !strings.Contains(text, "Nothing is running here") || !strings.Contains(text, "feedwater top HOST:7070") {
		t.Error(text)
	}
	text = ansi.Strip(Render(Screen{Overview: &watch.Overview{Processes: []*pb.Process{{Kind: "node"}}}, Width: 80}))
	if !strings.Contains(text, "No job is running") {
		t.Error(text)
	}
}

func TestKeys(t *testing.T) {
	p := NewPoller(Options{Interval: time.Second})
	defer p.Close()
	m := &model{poller: p, screen: Screen{Overview: picture(), Width: 80, Height: 24}}
	press := func(k tea.KeyPressMsg) tea.Cmd {
		_, cmd := m.Update(k)
		return cmd
	}
	press(tea.KeyPressMsg{Code: tea.KeyDown})
	if m.screen.Selected != 1 || !strings.HasPrefix(m.job.name, "long") {
		t.Errorf("down selects %d", m.screen.Selected)
	}
	press(tea.KeyPressMsg{Code: tea.KeyDown})
	press(tea.KeyPressMsg{Code: tea.KeyEnter})
	if m.screen.Selected != 1 || !m.screen.Open {
		t.Error("enter does not open, or down leaves the list")
	}
	press(tea.KeyPressMsg{Code: tea.KeyEscape})
	if m.screen.Open {
		t.Error("escape does not close")
	}
	if cmd := press(tea.KeyPressMsg{Code: 'q', Text: "q"}); cmd == nil || fmt.Sprintf("%T", cmd()) != "tea.QuitMsg" {
		t.Error("q does not quit")
	}
	if view := m.View(); !strings.Contains(view.Content, "rn50-a") {
		t.Error("the view is empty")
	}
}

// Of many jobs the one that is wanted is found by typing, and shown alone: its ranks would lie below the screen.
func TestManyJobs(t *testing.T) {
	overview := picture()
	for i := range 44 {
		overview.Jobs = append(overview.Jobs, &pb.JobStatus{Job: fmt.Sprintf("Sweep-%02d", i), World: 1, Verdict: "healthy", Ranks: []*pb.RankStatus{
			{Rank: 0, Host: fmt.Sprintf("host-%02d", i), StepP50: 0.1},
		}})
	}
	m := &model{poller: NewPoller(Options{Interval: time.Second}), screen: Screen{Overview: overview, Width: 80, Height: 24}}
	defer m.poller.Close()
	text := func() string { return ansi.Strip(m.View().Content) }
	keys := func(all ...tea.KeyPressMsg) {
		for _, k := range all {
			m.Update(k)
		}
	}
	letters := func(word string) {
		for _, r := range word {
			keys(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
	check := func(what string, words []string, none ...string) {
		t.Helper()
		for _, w := range words {
			if !strings.Contains(text(), w) {
				t.Errorf("%s: %q is not there:\n%s", what, w, text())
			}
		}
		for _, w := range none {
			if strings.Contains(text(), w) {
				t.Errorf("%s: %q is there:\n%s", what, w, text())
			}
		}
	}
	for range 40 {
		keys(tea.KeyPressMsg{Code: tea.KeyDown})
	}
	check("down", []string{"›Sweep-38", "more above", "/ filter", "cpu-1:7070"})
	letters("/")
	letters("sweep-2q") // q is a letter here
	check("typing", []string{"filter: sweep-2q", "None of 46 jobs"})
	keys(tea.KeyPressMsg{Code: tea.KeyBackspace})
	check("backspace", []string{"filter: sweep-2▏", "Sweep-20", "Sweep-27", "2 below"}, "Sweep-30")
	keys(tea.KeyPressMsg{Code: tea.KeyEnter}, tea.KeyPressMsg{Code: tea.KeyDown}, tea.KeyPressMsg{Code: tea.KeyEnter})
	check("open", []string{"job 2 of 10", "Sweep-21", "host-21", "esc all jobs"}, "Sweep-22", "Sweep-20")
	keys(tea.KeyPressMsg{Code: tea.KeyEscape})
	check("closed", []string{"›Sweep-21", "Sweep-20"}, "host-21", "rn50-a")
	keys(tea.KeyPressMsg{Code: tea.KeyEscape})
	check("all", []string{"›Sweep-21", "more above"})
	letters("/DATA-BOUND")
	check("verdict", []string{"rn50-a"}, "Sweep")
}

// A node that neither a trainer nor this program reaches is told of once, where the nodes are; one that only this
// program does not reach, among the errors.
func TestErrorsAreToldOnce(t *testing.T) {
	p := NewPoller(Options{})
	refused := status.Error(codes.Unavailable, "connection refused")
	p.targets = map[string]*target{
		"down:7070": {err: refused}, "tls:7070": {err: refused},
		"unix:agent": {state: &pb.WatchResponse{Process: &pb.Process{Kind: "agent"}, Nodes: []*pb.NodeStatus{
			{Addr: "down:7070", State: "failed", Error: "connection refused"}, {Addr: "tls:7070", State: "ready"},
		}}},
	}
	errs := p.Overview(time.Now()).Errors
	if len(errs) != 1 || errs[0].Addr != "tls:7070" {
		t.Errorf("%+v", errs)
	}
}

// The job that is open stays so when another one comes before it.
func TestOpenJobStays(t *testing.T) {
	m := &model{screen: Screen{Overview: picture(), Width: 120, Height: 40}}
	for _, key := range []string{"/", "rn50"} {
		m.Update(tea.KeyPressMsg{Text: key, Code: rune(key[0])})
	}
	m.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
	m.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
	worse := starving()
	worse.Job = "rn50-b"
	m.screen.Overview.Jobs = append([]*pb.JobStatus{worse}, m.screen.Overview.Jobs...)
	m.selectJob() // as a refresh does
	if shown := m.screen.jobs()[m.screen.Selected].Job; !m.screen.Open || shown != "rn50-a" {
		t.Errorf("open: %v, shown: %s", m.screen.Open, shown)
	}
}
