package client

// Average of a cost.
type Average float64

// Add moves it.
func (a *Average) Add(x, weight float64) { *a += Average(weight) * (Average(x) - *a) }

func moveCost(cost, x int64) int64 { return cost + (x-cost)/64 }

func mixCost(cost, x, y int64) int64 { return cost + (x-y)/64 }

func moveSpeed(speed, x int64) int64 { return speed + (x-speed)/64 }

func judge(wait float64) bool { return wait > 3 }
