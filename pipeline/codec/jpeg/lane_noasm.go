//go:build !amd64 || purego

package jpeg

import "github.com/feedwater-io/feedwater/pipeline/internal/kernel"

// There is no assembly, so lane.vector is never set.

func (l *lane) readVector(cells []kernel.Block, m, n int) int { return l.readScalar(cells, m, n) }

func readBothVector(_, _ *lane, _, _ []kernel.Block, _ int) int { return 0 }

func (t *acTable) setVector() {}

func (t *acTable) setTriplesVector() {}

func (l *lane) skipVector(n int) int { return l.skipScalar(n) }

func (c *coder) readBandsVector(_ []kernel.Block, _ []uint64) int { return 0 }
