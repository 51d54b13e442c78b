package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/feedwater-io/feedwater/filename"
)

type listingParams struct {
	Path filename.Name `json:"path"`
}

type listingResult struct {
	Fingerprint string `json:"fingerprint"`
	Counts      []int  `json:"counts"`
}

func (l *loader) listFolder(ctx context.Context, params json.RawMessage) (any, []byte, error) {
	var p listingParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, nil, fmt.Errorf("listing: %w", err)
	}
	if l.agent.options.List == nil {
		return nil, nil, errors.New("listing: this agent has no folders")
	}
	found, err := l.agent.options.List(ctx, string(p.Path))
	if err != nil {
		return nil, nil, err
	}
	return &listingResult{found.Fingerprint, found.Counts}, found.Keys, nil
}
