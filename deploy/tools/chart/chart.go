// Package chart renders Feedwater's Helm chart as `helm template` does, without a cluster: values are checked by the chart's schema, and nothing is
// looked up but what a Release says is there. Folders and files are paths of this machine.
package chart

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

// Notes is the name of the template that is shown to people after an installation.
const Notes = "NOTES.txt"

// Release is what a chart is rendered for.
type Release struct {
	Name, Namespace string
	// Values go before those of the chart.
	Values map[string]any
	// Cluster is what templates look up; nil: nothing is there.
	Cluster engine.ClientProvider
}

// ReadValues reads a file of values.
func ReadValues(file string) (map[string]any, error) {
	v, err := chartutil.ReadValuesFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return v, nil
}

// Render gives the text of each template by its file's name, without those that come to nothing. Values that the schema refuses are an error that
// names them.
func Render(dir string, r Release) (map[string]string, error) {
	c, err := loader.LoadDir(dir)
	if err != nil {
		return nil, err
	}
	values, err := chartutil.ToRenderValues(c, r.Values, chartutil.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	texts, err := render(c, values, r.Cluster)
	if err != nil {
		return nil, err
	}
	byName := map[string]string{}
	for place, text := range texts {
		if strings.TrimSpace(text) != "" {
			byName[path.Base(place)] = text
		}
	}
	return byName, nil
}

func render(c *helmchart.Chart, values chartutil.Values, cluster engine.ClientProvider) (map[string]string, error) {
	if cluster == nil {
		return engine.Render(c, values)
	}
	return engine.RenderWithClientProvider(c, values, cluster)
}

// Documents are the objects of rendered templates, as JSON, in the order of the templates' names.
func Documents(texts map[string]string) ([][]byte, error) {
	var all [][]byte
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if name == Notes {
			continue
		}
		for text := range strings.SplitSeq(texts[name], "\n---") {
			object, err := yaml.YAMLToJSONStrict([]byte(text))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if !bytes.Equal(object, []byte("null")) {
				all = append(all, object)
			}
		}
	}
	return all, nil
}
