package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedwater-io/feedwater/pipeline/pixelcache"
)

// pixelMetrics tell of decoded pictures that are kept, if any are.
type pixelMetrics struct {
	cache                       *pixelcache.Cache
	hits, misses, kept, removed *prometheus.Desc
	pictures, used, limit       *prometheus.Desc
}

func newPixelMetrics(c *pixelcache.Cache) *pixelMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, subsystem, "pixel_cache_"+name), help, nil, nil)
	}
	return &pixelMetrics{
		cache:    c,
		hits:     desc("hits_total", "Pictures that were not decoded, since their pixels were kept."),
		misses:   desc("misses_total", "Pictures whose pixels were not kept."),
		kept:     desc("kept_total", "Pictures whose pixels were kept."),
		removed:  desc("removed_total", "Pictures that made room for those of formats that take longer to decode."),
		pictures: desc("pictures", "Pictures whose pixels are kept."),
		used:     desc("used_bytes", "Memory of pixels that are kept or in use."),
		limit:    desc("limit_bytes", "Memory that kept pixels may take."),
	}
}

// Describe implements prometheus.Collector.
func (m *pixelMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.hits, m.misses, m.kept, m.removed, m.pictures, m.used, m.limit} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *pixelMetrics) Collect(ch chan<- prometheus.Metric) {
	n := m.cache.Counts() // of none all are 0
	for d, v := range map[*prometheus.Desc]int64{m.hits: n.Hits, m.misses: n.Misses, m.kept: n.Kept, m.removed: n.Removed} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v))
	}
	for d, v := range map[*prometheus.Desc]int64{m.pictures: n.Pictures, m.used: n.Bytes, m.limit: n.Limit} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v))
	}
}
