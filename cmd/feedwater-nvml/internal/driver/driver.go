//go:build cgo && linux

package driver

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/feedwater-io/feedwater/cmd/feedwater-nvml/internal/gpu"
)

const libraryName = "libnvidia-ml.so.1"

// Driver is the library and the GPUs that it shows. The zero value is ready for Open.
type Driver struct {
	caller
	api     nvml.Interface
	version string
	devices []*device
}

// Open loads and starts the library. If it returns an error nothing else may be called, ever: the library is in an unknown state.
func (d *Driver) Open() error {
	d.library = dl.New(libraryName, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	defer d.begin("dlopen")()
	if err := d.library.Open(); err != nil {
		return fmt.Errorf("no NVIDIA driver: %w", err)
	}
	if !d.has("nvmlInit_v2") && !d.has("nvmlInit") {
		return fmt.Errorf("%s is not NVIDIA's library: it has no nvmlInit", libraryName)
	}
	d.api = nvml.New(nvml.WithLibraryPath(libraryName))
	d.begin("nvmlInit")
	if err := reason(d.api.Init()); err != nil {
		return fmt.Errorf("NVIDIA's library does not start: %w", err)
	}
	return d.find()
}

func (d *Driver) find() error {
	if v := call(&d.caller, d.api.SystemGetDriverVersion, "nvmlSystemGetDriverVersion"); v.err == nil {
		d.version = v.value
	}
	count := call(&d.caller, d.api.DeviceGetCount, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")
	switch {
	case count.err != nil:
		return fmt.Errorf("count of GPUs: %w", count.err)
	case count.value == 0:
		return errors.New("the driver shows no GPU to this process")
	}
	for i := range count.value {
		d.devices = append(d.devices, &device{caller: caller{library: d.library}, api: d.api, index: i})
	}
	return nil
}

// Version is the driver's, empty if it does not say.
func (d *Driver) Version() string { return d.version }

// Read reads every GPU, all at the same time since some calls take 20 ms. Means are over the time since the call before; the first
// call has none.
func (d *Driver) Read() []gpu.GPU {
	rows := make([][]gpu.GPU, len(d.devices))
	var reading sync.WaitGroup
	for i, one := range d.devices {
		reading.Go(func() { rows[i] = one.read() })
	}
	reading.Wait()
	var all []gpu.GPU
	for _, r := range rows {
		all = append(all, r...)
	}
	return all
}

// Busy names the calls that have not returned; any goroutine may ask.
func (d *Driver) Busy() string {
	var calls []string
	if c := d.doing.Load(); c != nil {
		return *c
	}
	for _, one := range d.devices {
		if c := one.doing.Load(); c != nil {
			calls = append(calls, fmt.Sprintf("%s on GPU %d", *c, one.index))
		}
	}
	return strings.Join(calls, ", ")
}
