package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedwater-io/feedwater/pipeline"
)

// newIndexMetrics tell of the indexes of pictures that a program uses; where none are kept, which is nil, all are 0.
func newIndexMetrics(program string, c *pipeline.IndexCounts) []prometheus.Collector {
	return []prometheus.Collector{
		newProgramCounter(program, "image_index_hits_total", "Pictures that had an index that is no copy.", c.Hits),
		newProgramCounter(program, "image_index_copies_total", "Pictures that had a copy for an index.", c.Copies),
		newProgramCounter(program, "image_index_misses_total", "Pictures that had no index.", c.Misses),
		newProgramCounter(program, "image_index_missing_copies_total", "Pictures that were decoded without a copy that they could have, for want of room for it.", c.MissingCopies),
		newProgramCounter(program, "image_index_made_copies_total", "Pictures that were decoded without a copy, of which one was made on the way.", c.MadeCopies),
	}
}
