package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

const envPrefix = "FEEDWATER_"

// addConfig gives c the flag --config and fills flags that were not given from the environment, else from the file.
func addConfig(c *cobra.Command) {
	file := c.Flags().String("config", "", "YAML `file` with any of these flags as keys")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if env, ok := os.LookupEnv(envPrefix + "CONFIG"); ok && !c.Flags().Changed("config") {
			*file = env
		}
		settings, err := readSettings(*file)
		if err != nil {
			return usageError{err}
		}
		if err := checkKeys(c.Flags(), settings); err != nil {
			return usageError{fmt.Errorf("%s: %w", *file, err)}
		}
		if err := fillFlags(c.Flags(), settings); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// readSettings reads a YAML file of scalars, lists and mappings. No file, and an empty one, gives none.
func readSettings(file string) (map[string][]string, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var nodes map[string]yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&nodes); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: more than one YAML document", file)
	}
	settings := make(map[string][]string, len(nodes))
	for key, n := range nodes {
		values, err := scalars(&n)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %s: %w", file, n.Line, key, err)
		}
		settings[key] = values
	}
	return settings, nil
}

// scalars are the values of a flag: one, a list, or a mapping as key=value.
func scalars(n *yaml.Node) ([]string, error) {
	n = meant(n)
	if n.Kind == yaml.ScalarNode {
		return []string{n.Value}, nil
	}
	var values []string
	for i, k := range n.Content {
		k = meant(k)
		if k.Kind != yaml.ScalarNode {
			return nil, errors.New("neither a value nor a list of values")
		}
		switch {
		case n.Kind == yaml.SequenceNode:
			values = append(values, k.Value)
		case i%2 == 1:
			values = append(values, meant(n.Content[i-1]).Value+"="+k.Value)
		}
	}
	return values, nil
}

// meant is what an alias stands for, and anything else itself.
func meant(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isSetting(f *pflag.Flag) bool { return f != nil && f.Name != "config" && f.Name != "help" }

// checkKeys finds settings that are no options of the command.
func checkKeys(flags *pflag.FlagSet, settings map[string][]string) error {
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if !isSetting(flags.Lookup(key)) {
			return fmt.Errorf("%q is no option of this command", key)
		}
	}
	return nil
}

// many is a flag that may be given more than once.
type many interface{ many() }

// fillFlags sets every flag that was not given and has a setting.
func fillFlags(flags *pflag.FlagSet, settings map[string][]string) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || !isSetting(f) {
			return
		}
		name := envPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		values, from := settings[f.Name], "the config file"
		if env, ok := os.LookupEnv(name); ok {
			values, from = []string{env}, name
		}
		if _, ok := f.Value.(many); !ok && len(values) > 1 {
			errs = append(errs, fmt.Errorf("%s: --%s takes one value, not %d", from, f.Name, len(values)))
			return
		}
		for _, v := range values {
			if err := f.Value.Set(v); err != nil {
				errs = append(errs, fmt.Errorf("%s: --%s %q: %w", from, f.Name, v, err))
			}
		}
	})
	return errors.Join(errs...)
}
