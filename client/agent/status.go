package agent

import (
	"github.com/feedwater-io/feedwater/client"
)

func statesOf(fleet *client.Fleet) []nodeState {
	all := []nodeState{}
	for _, s := range fleet.Status() {
		n := nodeState{Addr: s.Addr, State: string(s.State), Wants: s.Wants}
		if s.Err != nil {
			n.Error = clipMessage(s.Err.Error())
		}
		all = append(all, n)
	}
	return all
}

func (l *loader) fleetStatus() any {
	l.mu.Lock()
	fleet := l.fleet
	l.mu.Unlock()
	r := struct {
		Nodes  []nodeState   `json:"nodes"`
		Queued float64       `json:"queued"`
		Effort client.Effort `json:"effort"`
	}{Nodes: []nodeState{}}
	if fleet == nil {
		return r
	}
	r.Nodes, r.Effort = statesOf(fleet), fleet.Effort()
	for _, s := range fleet.Status() {
		r.Queued += s.Queued
	}
	return r
}
