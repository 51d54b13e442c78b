package client

// chooser says which node is asked for a want, by package pick. It changes nothing but what it has planned. It belongs to the fleet's goroutine.
type chooser struct {
	job    *job
	roster *roster
	queue  *queue
	cost   float64 // core-seconds of a sample
}
