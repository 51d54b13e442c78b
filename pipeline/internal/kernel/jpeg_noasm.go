//go:build !amd64 || purego

package kernel

// vectorJPEG is never called: Levels has Scalar alone.
func vectorJPEG() *JPEG { return nil }
