//go:build cgo && linux

package driver

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/feedwater-io/feedwater/cmd/feedwater-nvml/internal/gpu"
)

var (
	errUnsupported = errors.New("not supported")
	errPermission  = errors.New("no permission")
	errNothingNew  = errors.New("nothing new from the driver in this interval")
	errIdle        = errors.New("no samples: the GPU is idle")
	errFirst       = errors.New("needs two readings that are more than 0.1 s apart")
)

// caller guards calls into the library.
type caller struct {
	library *dl.DynamicLibrary
	doing   atomic.Pointer[string] // the call under way, nil between calls
}

// has reports whether the library knows a function. Calling one that it does not know ends the process.
func (c *caller) has(function string) bool { return c.library.Lookup(function) == nil }

// begin notes that a call is under way, and returns what notes its end.
func (c *caller) begin(function string) (end func()) {
	outer := c.doing.Swap(&function)
	return func() { c.doing.Store(outer) }
}

// outcome is what a call returned: a value or why there is none.
type outcome[T any] struct {
	value T
	err   error
}

// call calls f if the library has one of the functions that f may use.
func call[T any](c *caller, f func() (T, nvml.Return), functions ...string) outcome[T] {
	for _, function := range functions {
		if c.has(function) {
			defer c.begin(function)()
			v, ret := f()
			return outcome[T]{v, reason(ret)}
		}
	}
	return outcome[T]{err: fmt.Errorf("%w: this driver has no %s", errUnsupported, functions[0])}
}

// put keeps a value, or notes why it is unknown under its name in JSON.
func put[T any](g *gpu.GPU, name string, to **T, o outcome[T]) {
	if o.err != nil {
		g.Miss(o.err, name)
		return
	}
	*to = &o.value
}

// reason says what a return code means, nil for success. The library's own text is not asked for: after a failed start it must not be.
func reason(ret nvml.Return) error {
	switch ret {
	case nvml.SUCCESS:
		return nil
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_DEPRECATED:
		return errUnsupported
	case nvml.ERROR_NO_PERMISSION:
		return errPermission
	case nvml.ERROR_OPERATING_SYSTEM:
		return fmt.Errorf("%w: blocked by the operating system or the container's device rules", errPermission)
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED:
		return gpu.ErrLost
	case nvml.ERROR_NOT_FOUND, nvml.ERROR_NO_DATA:
		return errNothingNew
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return errors.New("the kernel module is not loaded")
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return errors.New("library and kernel module have different versions: reload the module or reboot")
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return errors.New("part of the driver's library is missing")
	case nvml.ERROR_GPU_NOT_FOUND:
		return errors.New("no GPU")
	case nvml.ERROR_UNINITIALIZED:
		return errors.New("the driver went away: start this program again")
	case nvml.ERROR_TIMEOUT:
		return errors.New("the driver timed out")
	case nvml.ERROR_IRQ_ISSUE, nvml.ERROR_INSUFFICIENT_POWER, nvml.ERROR_CORRUPTED_INFOROM:
		return fmt.Errorf("the GPU is faulty (NVML error %d: interrupt, power or inforom)", int32(ret))
	default:
		return fmt.Errorf("NVML error %d", int32(ret))
	}
}
