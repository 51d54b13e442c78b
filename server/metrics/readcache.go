package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedwater-io/feedwater/pipeline/dataset/readcache"
)

// cacheMetrics tell of the read cache, if there is one.
type cacheMetrics struct {
	cache                                                  *readcache.Cache
	hits, misses, damaged, refused, read, written, removed *prometheus.Desc
	used, limit                                            *prometheus.Desc
}

func newCacheMetrics(c *readcache.Cache) *cacheMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, subsystem, "read_cache_"+name), help, nil, nil)
	}
	return &cacheMetrics{
		cache:   c,
		hits:    desc("hits_total", "Blocks that were in the read cache."),
		misses:  desc("misses_total", "Blocks that were not in the read cache."),
		damaged: desc("damaged_total", "Blocks of the read cache that were not whole, and were removed."),
		refused: desc("refused_total", "Blocks that the read cache did not keep, for want of room or since its disk failed."),
		read:    desc("read_bytes_total", "Bytes of blocks that were in the read cache."),
		written: desc("written_bytes_total", "Bytes of blocks that were written to the read cache."),
		removed: desc("removed_bytes_total", "Bytes of blocks that were removed to make room."),
		used:    desc("used_bytes", "Bytes that the read cache has, of all processes that share it."),
		limit:   desc("limit_bytes", "Bytes that the read cache may have."),
	}
}

// Describe implements prometheus.Collector.
func (m *cacheMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.hits, m.misses, m.damaged, m.refused, m.read, m.written, m.removed, m.used, m.limit} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *cacheMetrics) Collect(ch chan<- prometheus.Metric) {
	n := m.cache.Counts() // of none all are 0
	for d, v := range map[*prometheus.Desc]int64{
		m.hits: n.Hits, m.misses: n.Misses, m.damaged: n.Damaged, m.refused: n.Refused, m.read: n.Read, m.written: n.Written, m.removed: n.Removed,
	} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v))
	}
	ch <- prometheus.MustNewConstMetric(m.used, prometheus.GaugeValue, float64(n.Used))
	ch <- prometheus.MustNewConstMetric(m.limit, prometheus.GaugeValue, float64(n.Limit))
}
