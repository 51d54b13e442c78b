//go:build cgo && linux

package driver

import (
	"cmp"
	"errors"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/feedwater-io/feedwater/cmd/feedwater-nvml/internal/gpu"
)

var errWhole = errors.New("not supported on a MIG instance: see its GPU")

// readInstances reads the MIG instances of a GPU. They come and go while the GPU runs, so they are looked for each time.
func (d *device) readInstances(g gpu.GPU, mig bool) []gpu.GPU {
	var rows []gpu.GPU
	before := d.instances
	d.instances = map[string]*activity{}
	if mig {
		most := call(&d.caller, d.handle.GetMaxMigDeviceCount, "nvmlDeviceGetMaxMigDeviceCount")
		for i := range most.value {
			h := call(&d.caller, func() (nvml.Device, nvml.Return) { return d.handle.GetMigDeviceHandleByIndex(i) },
				"nvmlDeviceGetMigDeviceHandleByIndex")
			if h.err == nil {
				rows = append(rows, d.readInstance(g, i, h.value, before))
			} else if !errors.Is(h.err, errNothingNew) { // the place is not empty
				row := gpu.GPU{Index: i, Parent: text(g.UUID)}
				row.MissAll(h.err)
				rows = append(rows, row)
			}
		}
	}
	for uuid, a := range before {
		if d.instances[uuid] == nil {
			a.free()
		}
	}
	return rows
}

func (d *device) readInstance(whole gpu.GPU, index int, h nvml.Device, before map[string]*activity) gpu.GPU {
	g := gpu.GPU{Index: index, Parent: text(whole.UUID), MIG: new(true), Unknown: map[string]string{}}
	uuid, name := d.whoIs(h)
	put(&g, "uuid", &g.UUID, uuid)
	put(&g, "name", &g.Name, name)
	g.Miss(errWhole, "utilisation", "utilisation_seconds", "sm_clock_mhz", "sm_clock_max_mhz", "memory_clock_mhz", "throttle_reasons")
	d.memory(&g, h)
	d.processes(&g, h)
	id := call(&d.caller, h.GetGpuInstanceId, "nvmlDeviceGetGpuInstanceId")
	if err := cmp.Or(uuid.err, id.err); err != nil {
		g.Miss(err, "engine_activity", "sm_activity")
	} else {
		a := before[uuid.value]
		if a == nil {
			a = &activity{}
		}
		d.instances[uuid.value] = a
		d.readActivity(&g, a, d.handle, func(s nvml.GpmSample) nvml.Return { return s.MigGet(d.handle, id.value) }, "nvmlGpmMigSampleGet")
	}
	if g.PCIeReceived == nil {
		g.Miss(errWhole, "pcie_rx_bytes_per_second", "pcie_tx_bytes_per_second")
	}
	return g
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
