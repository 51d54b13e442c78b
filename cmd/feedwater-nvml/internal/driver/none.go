//go:build !cgo || !linux

package driver

import (
	"errors"

	"github.com/feedwater-io/feedwater/cmd/feedwater-nvml/internal/gpu"
)

// Driver stands for the library where it cannot be called.
type Driver struct{}

// Open says why there is no driver.
func (*Driver) Open() error {
	return errors.New("built without cgo: NVIDIA's library cannot be called")
}

// Version is that of no driver.
func (*Driver) Version() string { return "" }

// Read has no GPUs.
func (*Driver) Read() []gpu.GPU { return nil }

// Busy is never so.
func (*Driver) Busy() string { return "" }
