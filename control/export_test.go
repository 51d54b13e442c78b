package control

// Plots is the folder for pictures; empty: none are drawn.
func Plots() string { return *plots }

// Picture draws a run of so many seconds, by period.
func Picture(seconds, needed float64, at, idle []float64, up, wanted []int) string {
	o := outcome{needed: needed, at: at, wanted: wanted, alive: wanted, starts: up}
	for _, i := range idle {
		o.readings = append(o.readings, Reading{Idle: min(i, 1)})
	}
	return o.svg(seconds)
}
