//go:build cgo && linux

package driver

import (
	"errors"
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/feedwater-io/feedwater/cmd/feedwater-nvml/internal/gpu"
)

var errHidden = errors.New("processes outside this container cannot be seen")

// processes lists who uses the GPU. Graphics and MPS lists are added where the driver has them; without the compute list there is none.
func (d *device) processes(g *gpu.GPU, h nvml.Device) {
	compute := call(&d.caller, h.GetComputeRunningProcesses, versions("nvmlDeviceGetComputeRunningProcesses")...)
	if compute.err != nil && !errors.Is(compute.err, errNothingNew) {
		g.Miss(compute.err, "processes")
		return
	}
	mps := call(&d.caller, h.GetMPSComputeRunningProcesses, versions("nvmlDeviceGetMPSComputeRunningProcesses")...)
	graphics := call(&d.caller, h.GetGraphicsRunningProcesses, versions("nvmlDeviceGetGraphicsRunningProcesses")...)
	rows := []gpu.Process{}
	seen := map[uint32]bool{}
	for _, list := range []struct {
		kind    string
		entries []nvml.ProcessInfo
	}{{"mps", mps.value}, {"compute", compute.value}, {"graphics", graphics.value}} {
		for _, e := range list.entries {
			if !seen[e.Pid] {
				seen[e.Pid] = true
				rows = append(rows, gpu.Process{PID: e.Pid, Kind: list.kind, MemoryUsedBytes: processMemory(e)})
			}
		}
	}
	if len(rows) == 0 && !HostPIDs() {
		g.Miss(errHidden, "processes")
		return
	}
	g.Processes = rows
}

// processMemory is nil where the driver does not say (NVML_VALUE_NOT_AVAILABLE).
func processMemory(e nvml.ProcessInfo) *uint64 {
	if e.UsedGpuMemory == math.MaxUint64 {
		return nil
	}
	return &e.UsedGpuMemory
}

func versions(function string) []string {
	return []string{function + "_v3", function + "_v2", function}
}
