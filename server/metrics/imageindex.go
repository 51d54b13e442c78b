package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedwater-io/feedwater/pipeline"
)

// ImageIndex tells of the indexes of pictures that a program uses, a "node" or an "agent"; where none are kept, which is nil, all are 0.
func ImageIndex(program string, c *pipeline.IndexCounts) (all []prometheus.Collector) {
	for _, m := range []struct {
		name, help string
		of         func() int64
	}{
		{"hits_total", "Pictures that had an index that is no copy.", c.Hits},
		{"copies_total", "Pictures that had a copy for an index.", c.Copies},
		{"misses_total", "Pictures that had no index.", c.Misses},
	} {
		opts := prometheus.CounterOpts{Namespace: namespace, Subsystem: program, Name: "image_index_" + m.name, Help: m.help}
		all = append(all, prometheus.NewCounterFunc(opts, func() float64 { return float64(m.of()) }))
	}
	return all
}
