package main

import (
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// rootService is what the storage of a root is called in gRPC's health service.
func rootService(root string) string { return pb.Feed_ServiceDesc.ServiceName + "/" + root }

// announceRoots says of each root that its storage answers, and returns what says so of one from then on. A root that does not answer is no
// reason to leave the node alone: the service as a whole stays as it is.
func announceRoots(node *health.Server, roots []string) func(root string, answers bool) {
	announce := func(root string, answers bool) {
		status := healthpb.HealthCheckResponse_NOT_SERVING
		if answers {
			status = healthpb.HealthCheckResponse_SERVING
		}
		node.SetServingStatus(rootService(root), status)
	}
	for _, root := range roots {
		announce(root, true)
	}
	return announce
}
