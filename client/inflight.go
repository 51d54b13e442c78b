package client

import (
	"time"

	"github.com/feedwater-io/feedwater/control/pick"
)

// inFlight are the wants that are at nodes: it sends them, takes their answers, and asks other nodes where one is late. It belongs to the fleet's
// goroutine.
type inFlight struct {
	job     *job
	roster  *roster
	queue   *queue
	chooser *chooser

	progress time.Time   // of the last batch, or of the first want after there was none, or of Open
	took     pick.Median // seconds that wants took, and without the queue
	making   pick.Median
	hedges   pick.Bank
	granted  time.Time // of the last hedge that was not earned
	effort   Effort
	traces   traces
	resumed  time.Time // when this process ran again that had been stopped
}
