//go:build !linux

package node

import "google.golang.org/grpc/credentials"

func newScatterCredentials(plain credentials.TransportCredentials, _ *frames) (credentials.TransportCredentials, int) {
	return plain, readBuffer
}
