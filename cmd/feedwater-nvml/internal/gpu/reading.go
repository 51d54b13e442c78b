// Package gpu is what feedwater-nvml says about GPUs: the values of one line and the arithmetic behind them. It reads no device, has no
// clock and starts no goroutine.
package gpu

import (
	"errors"
	"reflect"
	"strings"
	"time"
)

// ErrLost says that a GPU has fallen off the bus or waits for a reset: nothing can be read from it.
var ErrLost = errors.New("the GPU is lost: it fell off the bus or needs a reset (see the kernel log for Xid)")

// Line is one reading of all GPUs, printed as one line of JSON.
type Line struct {
	Time            time.Time `json:"time"`
	IntervalSeconds float64   `json:"interval_seconds,omitempty"` // since the reading before
	Driver          string    `json:"driver,omitempty"`           // version of the driver
	HostPIDs        *bool     `json:"host_pids,omitempty"`        // false: a container, whose driver may show its own processes alone
	GPUs            []GPU     `json:"gpus"`
	Reason          string    `json:"reason,omitempty"` // why there are no GPUs
}

// GPU is one GPU, or one MIG instance of a GPU, which follows its GPU. A value that is nil is not known, and Unknown says why, by its
// name in JSON. Nothing unknown is ever 0.
type GPU struct {
	Index  int     `json:"index"` // of the GPU; of the MIG instance on its GPU
	UUID   *string `json:"uuid"`
	Name   *string `json:"name"`
	Parent string  `json:"parent,omitempty"` // of a MIG instance: its GPU's UUID
	MIG    *bool   `json:"mig"`              // true: a GPU that is cut into instances, or an instance
	Lost   bool    `json:"lost"`

	Utilisation        *float64 `json:"utilisation"`         // share of time in which a kernel ran
	UtilisationSeconds *float64 `json:"utilisation_seconds"` // how much time stands behind Utilisation
	EngineActivity     *float64 `json:"engine_activity"`     // share of time in which the compute or graphics engine was active
	SMActivity         *float64 `json:"sm_activity"`         // share of multiprocessors that were busy

	MemoryUsedBytes  *uint64   `json:"memory_used_bytes"`
	MemoryTotalBytes *uint64   `json:"memory_total_bytes"`
	Processes        []Process `json:"processes"` // nil: unknown; empty: none

	SMClockMHz      *uint32  `json:"sm_clock_mhz"`
	SMClockMaxMHz   *uint32  `json:"sm_clock_max_mhz"`
	MemoryClockMHz  *uint32  `json:"memory_clock_mhz"`
	ThrottleReasons []string `json:"throttle_reasons"` // nil: unknown; empty: none

	PCIeReceived *float64 `json:"pcie_rx_bytes_per_second"` // from the host to the GPU
	PCIeSent     *float64 `json:"pcie_tx_bytes_per_second"`

	Unknown map[string]string `json:"unknown"`
}

// Process is a program that uses a GPU.
type Process struct {
	PID             uint32  `json:"pid"`
	Kind            string  `json:"kind"`              // compute, graphics or mps
	MemoryUsedBytes *uint64 `json:"memory_used_bytes"` // nil: the driver does not say
}

// Miss notes why values, named as in JSON, are unknown.
func (g *GPU) Miss(err error, names ...string) {
	if g.Unknown == nil {
		g.Unknown = map[string]string{}
	}
	for _, name := range names {
		g.Unknown[name] = err.Error()
	}
	g.Lost = g.Lost || errors.Is(err, ErrLost)
}

// MissAll notes why nothing at all is known.
func (g *GPU) MissAll(err error) {
	for f := range reflect.TypeFor[GPU]().Fields() {
		if k := f.Type.Kind(); k == reflect.Pointer || k == reflect.Slice {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			g.Miss(err, name)
		}
	}
}
