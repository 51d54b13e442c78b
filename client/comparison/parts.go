package comparison

import (
	"encoding/json"
	"strings"
)

// Part is one plan of those that are compared, and how many batches of it.
type Part struct {
	// Plan, JSON.
	Plan    string
	Batches int
}

// PlanParts divides batches among data, each a root or root/path of the nodes. Each has one at least, or nothing would
// be known of it. The plans go through decoding, resizing, warps and colours.
func PlanParts(data []string, batches int) []Part {
	parts := make([]Part, len(data))
	for i, d := range data {
		root, path, _ := strings.Cut(d, "/")
		parts[i] = Part{usualPlan(root, path), max(1, (batches+len(data)-1-i)/len(data))}
	}
	return parts
}

func usualPlan(root, path string) string {
	text, _ := json.Marshal(map[string]any{ // nothing in it can fail
		"source":   map[string]string{"root": root, "path": path},
		"seed":     17,
		"shuffle":  true,
		"on_error": "skip",
		"transforms": []any{
			map[string]any{"op": "RandomResizedCrop", "size": []int{224, 224}},
			map[string]any{"op": "RandomHorizontalFlip"}, map[string]any{"op": "RandAugment"},
		},
	})
	return string(text)
}
