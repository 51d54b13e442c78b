//go:build !amd64 || purego

package kernel

// vectorJPEG and wideJPEG are never called: Levels has Scalar alone.
func vectorJPEG() *JPEG { return nil }
func wideJPEG() *JPEG   { return nil }
