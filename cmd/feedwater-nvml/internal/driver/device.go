//go:build cgo && linux

package driver

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/feedwater-io/feedwater/cmd/feedwater-nvml/internal/gpu"
)

// device is one GPU and what was seen of it before.
type device struct {
	caller
	api       nvml.Interface
	index     int
	handle    nvml.Device // nil until the library gave one
	uuid      outcome[string]
	name      outcome[string]
	seen      time.Duration
	begun     bool // a buffer was looked at before: what is new now belongs to this interval
	gpm       activity
	instances map[string]*activity // by UUID
}

// read reads the GPU and then its MIG instances.
func (d *device) read() []gpu.GPU {
	g := gpu.GPU{Index: d.index, Unknown: map[string]string{}}
	if d.handle == nil {
		h := call(&d.caller, func() (nvml.Device, nvml.Return) { return d.api.DeviceGetHandleByIndex(d.index) },
			"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex")
		if h.err != nil {
			g.MissAll(h.err)
			return []gpu.GPU{g}
		}
		d.handle = h.value
	}
	d.identity(&g)
	mig := call(&d.caller, d.migMode, "nvmlDeviceGetMigMode")
	if errors.Is(mig.err, errUnsupported) {
		mig = outcome[bool]{}
	}
	put(&g, "mig", &g.MIG, mig)
	d.utilisation(&g)
	d.readActivity(&g, &d.gpm, d.handle, func(s nvml.GpmSample) nvml.Return { return s.Get(d.handle) }, "nvmlGpmSampleGet")
	d.memory(&g, d.handle)
	d.processes(&g, d.handle)
	d.clocks(&g)
	d.pcie(&g)
	return append([]gpu.GPU{g}, d.readInstances(g, mig.value)...)
}

// identity remembers who the GPU is: a lost one does not say.
func (d *device) identity(g *gpu.GPU) {
	if d.uuid.value == "" || d.uuid.err != nil {
		d.uuid, d.name = d.whoIs(d.handle)
	}
	put(g, "uuid", &g.UUID, d.uuid)
	put(g, "name", &g.Name, d.name)
}

func (d *device) whoIs(h nvml.Device) (uuid, name outcome[string]) {
	return call(&d.caller, h.GetUUID, "nvmlDeviceGetUUID"), call(&d.caller, h.GetName, "nvmlDeviceGetName")
}

func (d *device) migMode() (bool, nvml.Return) {
	now, _, ret := d.handle.GetMigMode()
	return now == nvml.DEVICE_MIG_ENABLE, ret
}

// utilisation asks for the whole buffer, not for what is newer than the last look: the driver compares times, and after a
// clock was set back may find nothing new for as long.
func (d *device) utilisation(g *gpu.GPU) {
	o := call(&d.caller, d.samples, "nvmlDeviceGetSamples")
	share, covered, newest := gpu.Utilisation(o.value, d.seen)
	first := !d.begun
	d.begun, d.seen = true, newest
	switch {
	case o.err != nil && !errors.Is(o.err, errNothingNew):
		g.Miss(o.err, "utilisation", "utilisation_seconds")
	case first:
		g.Miss(errFirst, "utilisation", "utilisation_seconds")
	case covered == 0 && d.idle():
		g.Utilisation = new(0.0)
		g.Miss(errIdle, "utilisation_seconds")
	case covered == 0:
		g.Miss(errNothingNew, "utilisation", "utilisation_seconds")
	default:
		g.Utilisation, g.UtilisationSeconds = &share, new(covered.Seconds())
	}
}

// idle reports whether the driver says that no kernel runs. Where there are no samples either, they are none because of that: some
// drivers take none while a GPU is idle. Any other value is of a sample that was counted already.
func (d *device) idle() bool {
	o := call(&d.caller, d.handle.GetUtilizationRates, "nvmlDeviceGetUtilizationRates")
	return o.err == nil && o.value.Gpu == 0
}

// samples is the driver's buffer. An entry without a time is none: the buffer may shrink between the question of how many there are
// and the answer, and a share above 1 is a driver's mistake.
func (d *device) samples() ([]gpu.Sample, nvml.Return) {
	kind, entries, ret := d.handle.GetSamples(nvml.GPU_UTILIZATION_SAMPLES, 0)
	if ret != nvml.SUCCESS {
		return nil, ret
	}
	var buffer []gpu.Sample
	for _, e := range entries {
		s := gpu.Sample{Time: time.Duration(e.TimeStamp) * time.Microsecond, Share: number(kind, e.SampleValue) / 100}
		if e.TimeStamp != 0 && s.Share >= 0 && s.Share <= 1 {
			buffer = append(buffer, s)
		}
	}
	return buffer, ret
}

// number is a value of the library's union; NaN of a kind that shares never have.
func number(kind nvml.ValueType, bytes [8]byte) float64 {
	word := binary.NativeEndian.Uint64(bytes[:])
	switch kind {
	case nvml.VALUE_TYPE_DOUBLE:
		return math.Float64frombits(word)
	case nvml.VALUE_TYPE_UNSIGNED_INT, nvml.VALUE_TYPE_SIGNED_INT:
		return float64(binary.NativeEndian.Uint32(bytes[:]))
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		return float64(word)
	default:
		return math.NaN()
	}
}

// memory prefers the newer function, which does not count what the driver reserves as used.
func (d *device) memory(g *gpu.GPU, h nvml.Device) {
	type amounts struct{ used, total uint64 }
	o := call(&d.caller, func() (amounts, nvml.Return) {
		m, ret := h.GetMemoryInfo_v2()
		return amounts{m.Used, m.Total}, ret
	}, "nvmlDeviceGetMemoryInfo_v2")
	if o.err != nil {
		o = call(&d.caller, func() (amounts, nvml.Return) {
			m, ret := h.GetMemoryInfo()
			return amounts{m.Used, m.Total}, ret
		}, "nvmlDeviceGetMemoryInfo")
	}
	put(g, "memory_used_bytes", &g.MemoryUsedBytes, outcome[uint64]{o.value.used, o.err})
	put(g, "memory_total_bytes", &g.MemoryTotalBytes, outcome[uint64]{o.value.total, o.err})
}

func (d *device) clocks(g *gpu.GPU) {
	clock := func(f func(nvml.ClockType) (uint32, nvml.Return), kind nvml.ClockType, function string) outcome[uint32] {
		return call(&d.caller, func() (uint32, nvml.Return) { return f(kind) }, function)
	}
	put(g, "sm_clock_mhz", &g.SMClockMHz, clock(d.handle.GetClockInfo, nvml.CLOCK_SM, "nvmlDeviceGetClockInfo"))
	put(g, "sm_clock_max_mhz", &g.SMClockMaxMHz, clock(d.handle.GetMaxClockInfo, nvml.CLOCK_SM, "nvmlDeviceGetMaxClockInfo"))
	put(g, "memory_clock_mhz", &g.MemoryClockMHz, clock(d.handle.GetClockInfo, nvml.CLOCK_MEM, "nvmlDeviceGetClockInfo"))
	bits := call(&d.caller, d.handle.GetCurrentClocksEventReasons, "nvmlDeviceGetCurrentClocksEventReasons")
	if bits.err != nil {
		bits = call(&d.caller, d.handle.GetCurrentClocksThrottleReasons, "nvmlDeviceGetCurrentClocksThrottleReasons") // its name until driver 535
	}
	if bits.err != nil {
		g.Miss(bits.err, "throttle_reasons")
		return
	}
	g.ThrottleReasons = throttles(bits.value)
}

// throttles names the bits, in words like nvidia-smi's.
func throttles(bits uint64) []string {
	names := []string{"gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal_slowdown",
		"hw_thermal_slowdown", "hw_power_brake_slowdown", "display_clock_setting"}
	set := []string{}
	for i, name := range names {
		if bits>>i&1 != 0 {
			set = append(set, name)
		}
	}
	if bits>>len(names) != 0 {
		set = append(set, "other")
	}
	return set
}

// pcie measures over 20 ms where GPM gave no mean over the interval.
func (d *device) pcie(g *gpu.GPU) {
	rate := func(counter nvml.PcieUtilCounter) outcome[float64] {
		return call(&d.caller, func() (float64, nvml.Return) {
			kilobytes, ret := d.handle.GetPcieThroughput(counter)
			return float64(kilobytes) * 1000, ret
		}, "nvmlDeviceGetPcieThroughput")
	}
	if g.PCIeReceived == nil {
		put(g, "pcie_rx_bytes_per_second", &g.PCIeReceived, rate(nvml.PCIE_UTIL_RX_BYTES))
	}
	if g.PCIeSent == nil {
		put(g, "pcie_tx_bytes_per_second", &g.PCIeSent, rate(nvml.PCIE_UTIL_TX_BYTES))
	}
}
