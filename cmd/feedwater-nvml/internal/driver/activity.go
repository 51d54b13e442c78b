//go:build cgo && linux

package driver

import (
	"fmt"
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/feedwater-io/feedwater/cmd/feedwater-nvml/internal/gpu"
)

// gpmDistance is how far apart two samples must be at least, by NVML's documentation of nvmlGpmSampleGet.
const gpmDistance = 100 * time.Millisecond

// activity has the samples of hardware counters (GPM) between which means are taken: the newest ones, oldest first, of which the
// first alone may be farther away than gpmDistance.
type activity struct{ past []counters }

type counters struct {
	sample nvml.GpmSample
	at     time.Time
}

// free gives the samples back.
func (a *activity) free() {
	for _, c := range a.past {
		_ = c.sample.Free()
	}
	a.past = nil
}

// readActivity reads the means of the hardware counters since the reading before, or the one before that if it was too close.
func (d *device) readActivity(g *gpu.GPU, a *activity, h nvml.Device, take func(nvml.GpmSample) nvml.Return, function string) {
	metrics, err := d.metrics(a, h, take, function)
	if err != nil {
		g.Miss(err, "engine_activity", "sm_activity")
		return
	}
	const percent, mebibyte = 0.01, 1 << 20
	put(g, "engine_activity", &g.EngineActivity, value(metrics[0], percent))
	put(g, "sm_activity", &g.SMActivity, value(metrics[1], percent))
	if rx, tx := value(metrics[2], mebibyte), value(metrics[3], mebibyte); rx.err == nil && tx.err == nil {
		g.PCIeReceived, g.PCIeSent = &rx.value, &tx.value
	}
}

func (d *device) metrics(a *activity, h nvml.Device, take func(nvml.GpmSample) nvml.Return, function string) ([]nvml.GpmMetric, error) {
	if err := d.hasCounters(h, function); err != nil {
		return nil, err
	}
	alloc := call(&d.caller, d.api.GpmSampleAlloc, "nvmlGpmSampleAlloc")
	if alloc.err != nil {
		return nil, alloc.err
	}
	now := counters{alloc.value, time.Now()}
	if o := call(&d.caller, func() (struct{}, nvml.Return) { return struct{}{}, take(now.sample) }, function); o.err != nil {
		_ = now.sample.Free()
		return nil, o.err
	}
	base, ok := a.base(now.at)
	a.past = append(a.past, now)
	if !ok {
		return nil, errFirst
	}
	get := nvml.GpmMetricsGetType{NumMetrics: 4, Sample1: base.sample, Sample2: now.sample}
	for i, id := range []nvml.GpmMetricId{nvml.GPM_METRIC_GRAPHICS_UTIL, nvml.GPM_METRIC_SM_UTIL,
		nvml.GPM_METRIC_PCIE_RX_PER_SEC, nvml.GPM_METRIC_PCIE_TX_PER_SEC} {
		get.Metrics[i].MetricId = uint32(id)
	}
	o := call(&d.caller, func() (struct{}, nvml.Return) { return struct{}{}, d.api.GpmMetricsGet(&get) }, "nvmlGpmMetricsGet")
	return get.Metrics[:get.NumMetrics], o.err
}

// hasCounters is nil where the GPU has counters and the library all functions for them.
func (d *device) hasCounters(h nvml.Device, take string) error {
	for _, function := range []string{take, "nvmlGpmSampleAlloc", "nvmlGpmSampleFree", "nvmlGpmMetricsGet"} {
		if !d.has(function) {
			return fmt.Errorf("%w: this driver has no %s", errUnsupported, function)
		}
	}
	o := call(&d.caller, h.GpmQueryDeviceSupport, "nvmlGpmQueryDeviceSupport")
	if o.err == nil && o.value.IsSupportedDevice == 0 {
		return fmt.Errorf("%w: needs a GPU of the Hopper generation or newer", errUnsupported)
	}
	return o.err
}

// base is the newest sample that is far enough away, and frees those before it.
func (a *activity) base(now time.Time) (counters, bool) {
	for i := len(a.past) - 1; i >= 0; i-- {
		if now.Sub(a.past[i].at) > gpmDistance {
			old := activity{a.past[:i:i]}
			a.past = a.past[i:]
			base := a.past[0]
			old.free()
			return base, true
		}
	}
	return counters{}, false
}

func value(m nvml.GpmMetric, unit float64) outcome[float64] {
	if err := reason(nvml.Return(m.NvmlReturn)); err != nil {
		return outcome[float64]{err: err}
	}
	if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) || m.Value < 0 {
		return outcome[float64]{err: errNothingNew}
	}
	return outcome[float64]{value: m.Value * unit}
}
