package chart

import (
	"path/filepath"
	"strings"
)

// Manifests are the chart of a folder rendered with its least values, by name of file, as deploy/kubernetes has them. The namespace is not among
// them: `kubectl delete -f` would take with it what people have there.
func Manifests(dir string) (map[string]string, error) {
	values, err := ReadValues(filepath.Join(dir, "ci", "minimal.yaml"))
	if err != nil {
		return nil, err
	}
	texts, err := Render(dir, Release{Name: "feedwater", Namespace: "feedwater", Values: values})
	if err != nil {
		return nil, err
	}
	delete(texts, Notes)
	for name, text := range texts {
		text = strings.ReplaceAll(text, "app.kubernetes.io/managed-by: Helm\n", "app.kubernetes.io/managed-by: kubectl\n")
		texts[name] = "# Rendered from deploy/helm/feedwater by make manifests: edit that.\n" + strings.TrimSpace(text) + "\n"
	}
	return texts, nil
}
