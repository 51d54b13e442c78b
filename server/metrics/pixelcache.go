package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/pixelcache"
)

// Counts of decoded pictures that are kept, with their name behind pixel_cache_, and those that are as much as there is now.
var (
	pixelCounters = []pixelMetric{
		{"hits_total", "Pictures that were not decoded, since their pixels were kept.", func(n pixelcache.Counts) int64 { return n.Hits }},
		{"misses_total", "Pictures whose pixels were not kept.", func(n pixelcache.Counts) int64 { return n.Misses }},
		{"kept_total", "Pictures whose pixels were kept.", func(n pixelcache.Counts) int64 { return n.Kept }},
		{"removed_total", "Pictures that made room for those of formats that take longer to decode, or of data in use.", func(n pixelcache.Counts) int64 { return n.Removed }},
	}
	pixelGauges = []pixelMetric{
		{"pictures", "Pictures whose pixels are kept.", func(n pixelcache.Counts) int64 { return n.Pictures }},
		{"used_bytes", "Memory of pixels that are kept or in use.", func(n pixelcache.Counts) int64 { return n.Bytes }},
		{"limit_bytes", "Memory that kept pixels may take.", func(n pixelcache.Counts) int64 { return n.Limit }},
	}
)

type pixelMetric struct {
	name, help string
	of         func(pixelcache.Counts) int64
}

// Kept tells of what a program, a "node" or an "agent", keeps between pictures and of how much use it is: decoded ones, and indexes. Of nil all are 0.
func Kept(program string, pixels *pixelcache.Cache, index *pipeline.IndexCounts) []prometheus.Collector {
	return append(newPixelMetrics(program, pixels), newIndexMetrics(program, index)...)
}

func newPixelMetrics(program string, c *pixelcache.Cache) (all []prometheus.Collector) {
	for _, m := range pixelCounters {
		all = append(all, newProgramCounter(program, "pixel_cache_"+m.name, m.help, func() int64 { return m.of(c.Counts()) }))
	}
	for _, m := range pixelGauges {
		opts := prometheus.GaugeOpts{Namespace: namespace, Subsystem: program, Name: "pixel_cache_" + m.name, Help: m.help}
		all = append(all, prometheus.NewGaugeFunc(opts, func() float64 { return float64(m.of(c.Counts())) }))
	}
	return all
}
