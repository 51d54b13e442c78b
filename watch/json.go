package watch

import (
	"encoding/json"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// MarshalJSON writes the overview with the names of feedwater.proto. Members that are unknown are not there; durations
// are as protobuf's JSON has them, "1.5s".
func (p *Overview) MarshalJSON() ([]byte, error) {
	processes, err := toRawJSON(p.Processes)
	if err != nil {
		return nil, err
	}
	jobs, err := toRawJSON(p.Jobs)
	if err != nil {
		return nil, err
	}
	nodes, err := toRawJSON(p.Nodes)
	if err != nil {
		return nil, err
	}
	gpus, err := toRawJSON(p.Gpus)
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Time      time.Time         `json:"time"`
		Processes []json.RawMessage `json:"processes"`
		Jobs      []json.RawMessage `json:"jobs"`
		Nodes     []json.RawMessage `json:"nodes"`
		Gpus      []json.RawMessage `json:"gpus"`
		Errors    []TargetError     `json:"errors,omitempty"`
	}{p.Time, processes, jobs, nodes, gpus, p.Errors})
}

// TargetError says why a process tells nothing.
type TargetError struct {
	Addr  string `json:"addr"`
	Error string `json:"error"`
}

func toRawJSON[M proto.Message](all []M) ([]json.RawMessage, error) {
	o := protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}
	out := make([]json.RawMessage, len(all))
	for i, m := range all {
		b, err := o.Marshal(m)
		if err != nil {
			return nil, err
		}
		out[i] = b
	}
	return out, nil
}
