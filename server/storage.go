package server

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedwater-io/feedwater/pipeline/storage"
)

// Storage tells how the roots' storage is, by their names; folders that have no name are named by their path.
func (s *Server) Storage() []storage.State { return s.roots.States() }

// rootsOf are the roots that an engine reads from, and the node's.
func rootsOf(o *Options) *storage.Roots {
	roots := storage.New(storage.Options{})
	if e, ok := o.Engine.(Storer); ok {
		roots = e.Storage()
	}
	for name, folder := range o.Roots {
		roots.Add(name, folder)
	}
	roots.OnChange(func(r storage.State) {
		if r.Sick {
			o.Log.Warn("the storage of a root does not answer: its wants are made elsewhere until it does, other roots go on", "root", r.Name, "folder", r.Folder, "err", r.Cause)
		} else {
			o.Log.Info("the storage of a root answers again", "root", r.Name, "folder", r.Folder, "for", time.Since(r.Since).Round(time.Millisecond))
		}
		if isNamed(o.Roots, r.Name) {
			o.OnRoot(r.Name, !r.Sick)
		}
	})
	return roots
}

func isNamed(roots map[string]string, name string) bool {
	_, ok := roots[name]
	return ok
}

// describeTrouble says what roots do not answer, in words; empty: none.
func describeTrouble(roots *storage.Roots) string {
	var all []string
	for _, r := range roots.States() {
		if r.Sick {
			all = append(all, fmt.Sprintf("the storage of %s does not answer for %s", r.Name, time.Since(r.Since).Round(time.Second)))
		}
	}
	return strings.Join(all, "; ")
}

// rootMetrics tell of the roots that have names.
type rootMetrics struct {
	server                        *Server
	oldest, sick, stuck, timeouts *prometheus.Desc
}

func newRootMetrics(s *Server) *rootMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, subsystem, name), help, []string{"root"}, nil)
	}
	return &rootMetrics{
		server:   s,
		oldest:   desc("root_oldest_call_seconds", "Age of the oldest call on the storage of a root that has not come back: a read, or a listing since it last went on."),
		sick:     desc("root_sick", "1 while the storage of a root does not answer."),
		stuck:    desc("root_stuck_calls", "Calls on the storage of a root that take longer than usual, or do not come back."),
		timeouts: desc("root_timeouts_total", "Calls on the storage of a root that were given up."),
	}
}

// Describe implements prometheus.Collector.
func (m *rootMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.oldest, m.sick, m.stuck, m.timeouts} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *rootMetrics) Collect(ch chan<- prometheus.Metric) {
	for _, r := range m.server.roots.States() {
		if !isNamed(m.server.options.Roots, r.Name) {
			continue // paths are no labels
		}
		ch <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue, r.Oldest.Seconds(), r.Name)
		ch <- prometheus.MustNewConstMetric(m.sick, prometheus.GaugeValue, oneIf(r.Sick), r.Name)
		ch <- prometheus.MustNewConstMetric(m.stuck, prometheus.GaugeValue, float64(r.Stuck), r.Name)
		ch <- prometheus.MustNewConstMetric(m.timeouts, prometheus.CounterValue, float64(r.Timeouts), r.Name)
	}
}
