package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedwater-io/feedwater/pipeline/pixelcache"
)

// pixelMetrics tell of decoded pictures that are kept; of no cache all are 0.
func pixelMetrics(c *pixelcache.Cache) []prometheus.Collector {
	counter := func(name, help string, of func(pixelcache.Counts) int64) prometheus.Collector {
		return newOwnCounter("pixel_cache_"+name, help, func() float64 { return float64(of(c.Counts())) })
	}
	gauge := func(name, help string, of func(pixelcache.Counts) int64) prometheus.Collector {
		return newGauge("pixel_cache_"+name, help, func() float64 { return float64(of(c.Counts())) })
	}
	return []prometheus.Collector{
		counter("hits_total", "Pictures that were not decoded, since their pixels were kept.", func(n pixelcache.Counts) int64 { return n.Hits }),
		counter("misses_total", "Pictures whose pixels were not kept.", func(n pixelcache.Counts) int64 { return n.Misses }),
		counter("kept_total", "Pictures whose pixels were kept.", func(n pixelcache.Counts) int64 { return n.Kept }),
		counter("removed_total", "Pictures that made room for those of formats that take longer to decode.", func(n pixelcache.Counts) int64 { return n.Removed }),
		gauge("pictures", "Pictures whose pixels are kept.", func(n pixelcache.Counts) int64 { return n.Pictures }),
		gauge("used_bytes", "Memory of pixels that are kept or in use.", func(n pixelcache.Counts) int64 { return n.Bytes }),
		gauge("limit_bytes", "Memory that kept pixels may take.", func(n pixelcache.Counts) int64 { return n.Limit }),
	}
}
