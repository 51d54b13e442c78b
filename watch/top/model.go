package top

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Show runs the terminal view until the user or ctx ends it.
func Show(ctx context.Context, p *Poller, version string) error {
	m := &model{poller: p, screen: Screen{Overview: p.Overview(time.Now()), Interval: p.options.Interval, Width: 80, Height: 24, Version: version}}
	_, err := tea.NewProgram(m, tea.WithContext(ctx)).Run()
	if errors.Is(err, tea.ErrInterrupted) || ctx.Err() != nil {
		return nil //nolint:nilerr // the user or a signal ended it, which is how it ends
	}
	return err
}

// model is the terminal's state.
type model struct {
	poller *Poller
	screen Screen
	job    job // that is selected: rows move
}

// job names one; none has no plan and no name.
type job struct{ name, plan string }

func nameOf(j *pb.JobStatus) job { return job{j.Job, j.Plan} }

// tick asks for the next overview.
type tick time.Time

func (m *model) nextTick() tea.Cmd {
	return tea.Tick(m.screen.Interval, func(t time.Time) tea.Msg { return tick(t) })
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return m.nextTick() }

// Update implements tea.Model.
func (m *model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := message.(type) {
	case tea.WindowSizeMsg:
		m.screen.Width, m.screen.Height = msg.Width, msg.Height
	case tick:
		m.refreshOverview(time.Time(msg))
		return m, m.nextTick()
	case tea.KeyPressMsg:
		if m.screen.Typing {
			return m, m.handleTyping(msg)
		}
		return m, m.handleKey(msg.String())
	}
	return m, nil
}

func (m *model) handleKey(name string) tea.Cmd {
	switch name {
	case "q", "ctrl+c":
		return tea.Quit
	case "esc":
		if m.screen.Open {
			m.screen.Open = false
		} else {
			m.setFilter("")
		}
	case "/":
		m.screen.Open, m.screen.Typing = false, true
	case "enter", "space":
		m.screen.Open = !m.screen.Open
		if m.screen.Open {
			m.moveSelection(0) // the job that is shown stays it wherever its row goes
		}
	case "up", "k":
		m.moveSelection(-1)
	case "down", "j":
		m.moveSelection(1)
	}
	return nil
}

// handleTyping takes a key while the filter is typed.
func (m *model) handleTyping(key tea.KeyPressMsg) tea.Cmd {
	filter := []rune(m.screen.Filter)
	switch name := key.String(); {
	case name == "ctrl+c":
		return tea.Quit
	case name == "esc":
		m.screen.Typing = false
		m.setFilter("")
	case name == "enter":
		m.screen.Typing = false
	case name == "backspace":
		m.setFilter(string(filter[:max(len(filter)-1, 0)]))
	case len(filter) < maxFilter:
		m.setFilter(m.screen.Filter + key.Text)
	}
	return nil
}

// maxFilter is how many letters a filter has at most, so that it fits the line of keys.
const maxFilter = 30

func (m *model) setFilter(filter string) {
	m.screen.Filter = filter
	m.selectJob()
}

func (m *model) moveSelection(step int) {
	jobs := m.screen.jobs()
	if len(jobs) == 0 {
		return
	}
	m.screen.Selected = min(max(m.screen.Selected+step, 0), len(jobs)-1)
	m.job = nameOf(jobs[m.screen.Selected])
}

// refreshOverview takes the latest overview; the selected job stays selected wherever it goes, and the worst one is
// until one was chosen.
func (m *model) refreshOverview(now time.Time) {
	m.screen.Overview = m.poller.Overview(now)
	m.selectJob()
}

// selectJob finds the selected job among those that are shown.
func (m *model) selectJob() {
	m.screen.Selected = 0
	for i, j := range m.screen.jobs() {
		if nameOf(j) == m.job {
			m.screen.Selected = i
		}
	}
}

// View implements tea.Model.
func (m *model) View() tea.View {
	v := tea.NewView(Render(m.screen))
	v.AltScreen = true
	return v
}
