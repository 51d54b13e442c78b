package scaler

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/feedwater-io/feedwater/proto/externalscaler"
)

// Metric is the name that KEDA knows the number of nodes by. Its target is 1, so that the number is the metric.
const Metric = "nodes_wanted"

// Wanted is how many nodes there should be. An error: nodes are there and none has answered yet, or none does, so that
// nothing is known; the number should stay.
func (s *Scaler) Wanted() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.updated.IsZero() || !s.informed || s.wanted == 0 && len(s.nodes) > 0 && !s.hasAnswers() {
		return 0, s.unknown()
	}
	return s.wanted, nil
}

// currentActive is whether a trainer is there, and what is closed when that is computed anew. KEDA takes away the last
// node when it has been told of none for its cooldownPeriod, however many are wanted still. The error is that of Wanted.
func (s *Scaler) currentActive() (bool, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.updated.IsZero() || !s.active && len(s.nodes) > 0 && !s.hasAnswers() {
		return false, s.change, s.unknown()
	}
	return s.active, s.change, nil
}

// unknown is the error of whoever asks while nothing is known. mu is held.
func (s *Scaler) unknown() error {
	return status.Error(codes.Unavailable, "no node answers: how many are wanted is not known"+s.silenceReason())
}

// hasAnswers reports whether the number has a node's word. mu is held.
func (s *Scaler) hasAnswers() bool {
	for _, n := range s.nodes {
		if n.counted {
			return true
		}
	}
	return false
}

// silenceReason is what one of the nodes says that does not answer, the first by address; empty: none says anything. mu
// is held.
func (s *Scaler) silenceReason() string {
	for _, addr := range slices.Sorted(maps.Keys(s.nodes)) {
		if err := s.nodes[addr].err; err != nil {
			return fmt.Sprintf("; %s: %v", addr, err)
		}
	}
	return ""
}

// IsActive implements KEDA's contract: whether there is a trainer.
func (s *Scaler) IsActive(context.Context, *externalscaler.ScaledObjectRef) (*externalscaler.IsActiveResponse, error) {
	active, _, err := s.currentActive()
	if err != nil {
		return nil, err
	}
	return &externalscaler.IsActiveResponse{Result: active}, nil
}

// StreamIsActive implements KEDA's contract: the same, as soon as it is known and whenever it changes.
func (s *Scaler) StreamIsActive(_ *externalscaler.ScaledObjectRef, stream grpc.ServerStreamingServer[externalscaler.IsActiveResponse]) error {
	s.metrics.streams.Inc()
	defer s.metrics.streams.Dec()
	said, told := false, false
	for {
		active, change, err := s.currentActive()
		if err == nil && (!told || said != active) {
			if err := stream.Send(&externalscaler.IsActiveResponse{Result: active}); err != nil {
				return err
			}
			said, told = active, true
		}
		select {
		case <-change:
		case <-stream.Context().Done():
			return nil
		}
	}
}

// GetMetricSpec implements KEDA's contract.
func (s *Scaler) GetMetricSpec(context.Context, *externalscaler.ScaledObjectRef) (*externalscaler.GetMetricSpecResponse, error) {
	return &externalscaler.GetMetricSpecResponse{MetricSpecs: []*externalscaler.MetricSpec{{MetricName: Metric, TargetSize: 1, TargetSizeFloat: 1}}}, nil
}

// GetMetrics implements KEDA's contract.
func (s *Scaler) GetMetrics(context.Context, *externalscaler.GetMetricsRequest) (*externalscaler.GetMetricsResponse, error) {
	n, err := s.Wanted()
	if err != nil {
		return nil, err
	}
	return &externalscaler.GetMetricsResponse{MetricValues: []*externalscaler.MetricValue{
		{MetricName: Metric, MetricValue: int64(n), MetricValueFloat: float64(n)},
	}}, nil
}
