package share

// BusyMeter measures for how long a node had work at hand.
type BusyMeter struct {
	// Workers is how many samples the node makes at once.
	Workers int

	samples        int // queued or in the making
	since, seconds float64
}

// Add counts n samples in, or out if n is negative.
func (h *BusyMeter) Add(n int, now float64) {
	if d := now - h.since; d > 0 && h.Workers > 0 {
		h.seconds += d * float64(min(max(h.samples, 0), h.Workers)) / float64(h.Workers)
	}
	h.samples, h.since = h.samples+n, now
}

// Seconds with work at hand until now; a second with samples for half of the workers only counts half. A node whose
// cores are throttled or whose storage is slow does less in them than workers times this.
func (h *BusyMeter) Seconds(now float64) float64 {
	h.Add(0, now)
	return h.seconds
}
