package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/feedwater-io/feedwater/filename"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

type replayParams struct {
	Epoch    uint32   `json:"epoch"`
	Position uint64   `json:"position"`
	Count    uint32   `json:"count"`
	Indices  []uint64 `json:"indices"`
	Repeats  []uint32 `json:"repeats"`
	Pixels   bool     `json:"pixels"`
	Policy   []byte   `json:"policy"`
}

type sampleJSON struct {
	Key          filename.Name     `json:"key"`
	Index        uint64            `json:"index"`
	Repeat       uint32            `json:"repeat"`
	Label        int64             `json:"label"`
	EncodedBytes uint64            `json:"encoded_bytes"`
	Height       uint32            `json:"height"`
	Width        uint32            `json:"width"`
	Offset       int               `json:"offset"`
	Draws        []json.RawMessage `json:"draws"`
	Error        *sampleError      `json:"error"`
	Values       map[string][]byte `json:"values,omitempty"`
}

func (l *loader) replaySamples(ctx context.Context, params json.RawMessage) (any, []byte, error) {
	var p replayParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, nil, fmt.Errorf("replay: %w", err)
	}
	name := &pb.Name{Epoch: p.Epoch, Samples: &pb.Name_Range{Range: &pb.Range{Position: p.Position, Count: p.Count}}}
	if p.Indices != nil {
		name.Samples = &pb.Name_List{List: &pb.List{Indices: p.Indices, Repeats: p.Repeats}}
	}
	name.Policy = p.Policy
	l.mu.Lock()
	fleet := l.fleet
	l.mu.Unlock()
	if fleet == nil {
		return nil, nil, errors.New("replay before open")
	}
	answer, err := fleet.Replay(ctx, &pb.ReplayRequest{Name: name, Pixels: p.Pixels})
	if err != nil {
		return nil, nil, err
	}
	samples, blob := newSamples(answer.Samples)
	return map[string]any{"samples": samples}, blob, nil
}

// newSamples are samples as the trainer gets them, and their pixels behind each other.
func newSamples(answer []*pb.Sample) (samples []sampleJSON, blob []byte) {
	samples = []sampleJSON{}
	for _, s := range answer {
		j := sampleJSON{
			Key: filename.Name(s.Key), Index: s.Index, Repeat: s.Repeat, Label: s.Label, EncodedBytes: s.EncodedBytes,
			Height: s.Height, Width: s.Width, Offset: len(blob), Draws: []json.RawMessage{}, Values: s.Values,
		}
		for _, d := range s.Draws {
			j.Draws = append(j.Draws, drawJSON(d))
		}
		if s.Error != nil {
			e := newSampleError(s.Error, "")
			j.Error = &e
		}
		blob = append(blob, s.Image...)
		samples = append(samples, j)
	}
	return samples, blob
}

// drawJSON is a draw as one flat object.
func drawJSON(d *pb.Draw) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal([]byte(d.Parameters), &all) != nil || all == nil { // parameters are optional
		all = map[string]json.RawMessage{}
	}
	all["op"], all["applied"] = mustJSON(d.Op), mustJSON(d.Applied)
	return mustJSON(all)
}
