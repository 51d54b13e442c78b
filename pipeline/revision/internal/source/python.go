package source

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// pythonFolder has the package that the training loop imports.
const pythonFolder = "python/feedwater"

// pythonRoots are the modules of Python that units begin at.
var pythonRoots = map[string][]string{
	"order": {
		"_order.steps", "_order.cursor", "_order.samplers", "_order.sampler_epoch", "_order.generators",
		"_common.ranks", "_ctaugment.policy", "_ctaugment.philox",
	},
	"lasthop": {
		"_value_table", "_batch.batch", "_batch.field_view", "_batch.batch_transform", "_batch.device_batch",
		"_common.random_state", "_device.hop",
	},
}

// pythonApart are modules of Python that decide no byte: they lend memory, carry answers, and word errors.
var pythonApart = []string{
	"_agent.feed", "_agent.memory", "_agent.session", "_agent.slots", "_agent.want", "_agent.plan_info",
	"_agent.pinned_slots", "_device.failure", "_device.pinned", "_device.registration", "_device.runtime",
	"_device.tensors", "_device.transfer", "errors",
}

//go:embed closure.py
var pythonClosure string

// digestPython gathers what Python has of each unit.
func digestPython(dir, python string) (map[string]part, error) {
	roots, err := json.Marshal(pythonRoots)
	if err != nil {
		return nil, err
	}
	apart, err := json.Marshal(pythonApart)
	if err != nil {
		return nil, err
	}
	run := exec.Command(python, "-", filepath.Join(dir, pythonFolder), string(roots), string(apart)) //nolint:gosec // whoever calls us chose it
	run.Stdin = strings.NewReader(pythonClosure)
	var trouble bytes.Buffer
	run.Stderr = &trouble
	out, err := run.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", python, err, trouble.String())
	}
	var found map[string]map[string]string
	if err := json.Unmarshal(out, &found); err != nil {
		return nil, err
	}
	all := map[string]part{}
	for unit, declarations := range found {
		var p part
		for _, name := range slices.Sorted(maps.Keys(declarations)) {
			p.declarations = append(p.declarations, pythonFolder+"/"+name)
		}
		// Without names of modules, so that moving what is declared changes nothing.
		p.text = strings.Join(slices.Sorted(maps.Values(declarations)), "\n") + "\n"
		all[unit] = p
	}
	return all, nil
}
