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
	n, _, err := s.currentNumber()
	return n, err
}

// currentNumber is Wanted, and what is closed when that is computed anew.
func (s *Scaler) currentNumber() (int, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.updated.IsZero() || s.wanted == 0 && len(s.nodes) > 0 && !s.hasAnswers() {
		return 0, s.change, status.Error(codes.Unavailable, "no node answers: how many are wanted is not known"+s.silenceReason())
	}
	return s.wanted, s.change, nil
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

// IsActive implements KEDA's contract: whether there should be any node.
func (s *Scaler) IsActive(context.Context, *externalscaler.ScaledObjectRef) (*externalscaler.IsActiveResponse, error) {
	n, err := s.Wanted()
	if err != nil {
		return nil, err
	}
	return &externalscaler.IsActiveResponse{Result: n > 0}, nil
}

// StreamIsActive implements KEDA's contract: the same, as soon as it is known and whenever it changes.
func (s *Scaler) StreamIsActive(_ *externalscaler.ScaledObjectRef, stream grpc.ServerStreamingServer[externalscaler.IsActiveResponse]) error {
	said, told := false, false
	for {
		n, change, err := s.currentNumber()
		if active := n > 0; err == nil && (!told || said != active) {
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
