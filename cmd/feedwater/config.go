package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
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
		if err := fillFlags(c.Flags(), settings); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// readSettings reads a YAML file of scalars and lists. No file gives none.
func readSettings(file string) (map[string][]string, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var nodes map[string]yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&nodes); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
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
	if n.Kind == yaml.ScalarNode {
		return []string{n.Value}, nil
	}
	var values []string
	for i, k := range n.Content {
		if k.Kind != yaml.ScalarNode {
			return nil, errors.New("neither a value nor a list of values")
		}
		switch {
		case n.Kind == yaml.SequenceNode:
			values = append(values, k.Value)
		case n.Kind == yaml.MappingNode && i%2 == 1:
			values = append(values, n.Content[i-1].Value+"="+k.Value)
		}
	}
	return values, nil
}

// fillFlags sets every flag that was not given. A setting that is no flag is an error.
func fillFlags(flags *pflag.FlagSet, settings map[string][]string) error {
	for key := range settings {
		if flags.Lookup(key) == nil || key == "config" || key == "help" {
			return fmt.Errorf("the config file sets %q, which is no option of this command", key)
		}
	}
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "config" || f.Name == "help" {
			return
		}
		name := envPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		values, from := settings[f.Name], "the config file"
		if env, ok := os.LookupEnv(name); ok {
			values, from = []string{env}, name
		}
		for _, v := range values {
			if err := flags.Set(f.Name, v); err != nil {
				errs = append(errs, fmt.Errorf("%s: --%s %q: %w", from, f.Name, v, err))
			}
		}
	})
	return errors.Join(errs...)
}
