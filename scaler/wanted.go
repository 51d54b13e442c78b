package scaler

import (
	"encoding/json"
	"net/http"

	"google.golang.org/grpc/status"
)

// ServeWanted answers with the number that KEDA is told, as {"wanted": 7}, for engines that KEDA does not know. Where
// nothing is known it answers 503 and the reason, and never 0.
func (s *Scaler) ServeWanted(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	n, err := s.Wanted()
	if err != nil {
		http.Error(w, status.Convert(err).Message(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]int{"wanted": n}) // whoever asked has gone
}
