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

	"github.com/feedwater-io/feedwater/pipeline/spelling"
)

const envPrefix = "FEEDWATER_"

// addConfig gives c the flag --config and fills flags that were not given from the environment, else from the file. Own are names of
// flags that mean something else to another command: only variables with this command's name set them.
func addConfig(c *cobra.Command, own ...string) {
	file := c.Flags().String("config", "", "YAML `file` with any of these flags as keys")
	for _, name := range own {
		f := c.Flags().Lookup(name)
		f.Usage += "; in the environment " + commandVariable(c.Name(), f)
		f.Annotations = map[string][]string{ownFlag: nil}
	}
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if env, _, ok := lookUpFlag(c.Name(), c.Flags().Lookup("config")); ok && !c.Flags().Changed("config") {
			*file = env
		}
		answered := exitGuardOf(c.Context()).waitFor("--config "+*file, func(what string) {
			fmt.Fprintf(c.ErrOrStderr(), "feedwater: waits for the storage of %s, which does not answer\n", what)
		})
		settings, err := readSettings(*file)
		answered()
		if err != nil {
			return usageError{err}
		}
		if err := checkKeys(c.Flags(), settings); err != nil {
			return usageError{fmt.Errorf("%s: %w", *file, err)}
		}
		if err := fillFlags(c.Name(), c.Flags(), settings); err != nil {
			return usageError{err}
		}
		if c.Flags().Lookup("log-format") == nil { // those with a log say it there
			for _, w := range environmentWarnings(c.Name(), os.Environ()) {
				fmt.Fprintf(c.ErrOrStderr(), "feedwater: %s\n", w)
			}
		}
		return nil
	}
}

// readSettings reads a YAML file of scalars, lists and mappings. No file, and an empty one, gives none.
func readSettings(file string) (map[string]setting, error) {
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
	settings := make(map[string]setting, len(nodes))
	for key, n := range nodes {
		settings[key] = setting{node: n}
	}
	return settings, nil
}

// setting is what a flag is set to, by the file or the environment.
type setting struct {
	node yaml.Node // of the file
	text *string   // of the environment, else nil
}

// structured is a flag with more than a value, a list or a mapping of values.
type structured interface{ SetNode(n *yaml.Node) error }

// toValues are what to call Set with.
func (s *setting) toValues(key string) ([]string, error) {
	if s.text != nil {
		return []string{*s.text}, nil
	}
	values, err := scalarsOf(&s.node)
	if err != nil {
		return nil, fmt.Errorf("line %d: %s: %w", s.node.Line, key, err)
	}
	return values, nil
}

// fillFlag sets a flag.
func (s *setting) fillFlag(f *pflag.Flag) error {
	if v, ok := f.Value.(structured); ok && s.text == nil {
		return v.SetNode(&s.node)
	}
	values, err := s.toValues(f.Name)
	if err != nil {
		return err
	}
	if _, ok := f.Value.(isRepeatable); !ok && len(values) > 1 {
		return fmt.Errorf("--%s takes one value, not %d", f.Name, len(values))
	}
	var errs []error
	for _, v := range values {
		if err := f.Value.Set(v); err != nil {
			errs = append(errs, refusalError(f, v, err))
		}
	}
	return errors.Join(errs...)
}

// refusalError says what is wrong with a value. Of the types that pflag has, it says so itself only in the words of package strconv.
func refusalError(f *pflag.Flag, value string, err error) error {
	switch f.Value.Type() {
	case "int", "uint64":
		return fmt.Errorf("--%s %q is no whole number", f.Name, value)
	case "float64":
		return fmt.Errorf("--%s %q is no number", f.Name, value)
	case "bool":
		return fmt.Errorf("--%s %q is neither true nor false", f.Name, value)
	case "duration":
		return fmt.Errorf("--%s %q is no duration; write it like 30s", f.Name, value)
	}
	return fmt.Errorf("--%s %q: %w", f.Name, value, err)
}

// scalarsOf are the values of a flag: one, a list, or a mapping as key=value.
func scalarsOf(n *yaml.Node) ([]string, error) {
	n = resolveAlias(n)
	if n.Kind == yaml.ScalarNode {
		return []string{n.Value}, nil
	}
	var values []string
	for i, k := range n.Content {
		k = resolveAlias(k)
		if k.Kind != yaml.ScalarNode {
			return nil, errors.New("neither a value nor a list of values")
		}
		switch {
		case n.Kind == yaml.SequenceNode:
			values = append(values, k.Value)
		case i%2 == 1:
			values = append(values, resolveAlias(n.Content[i-1]).Value+"="+k.Value)
		}
	}
	return values, nil
}

// resolveAlias is what an alias stands for, and anything else itself.
func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isSetting(f *pflag.Flag) bool { return f != nil && f.Name != "config" && f.Name != "help" }

// checkKeys finds settings that are no options of the command.
func checkKeys(flags *pflag.FlagSet, settings map[string]setting) error {
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if !isSetting(flags.Lookup(key)) {
			return fmt.Errorf("%q is no option of this command%s", key, spelling.Suggest(key, settableFlags(flags)))
		}
	}
	return nil
}

// settableFlags are the names of all flags that a file may set.
func settableFlags(flags *pflag.FlagSet) []string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) {
		if isSetting(f) && !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// isRepeatable is a flag that may be given more than once.
type isRepeatable interface{ isRepeatable() }

// ownFlag annotates flags that mean something else to another command.
const ownFlag = "own"

// commandVariable is the variable that sets a flag of one command alone.
func commandVariable(command string, f *pflag.Flag) string {
	return variableOf(command + "-" + f.Name)
}

// variableFor is the shortest variable that sets a flag of a command.
func variableFor(command string, f *pflag.Flag) string {
	if _, own := f.Annotations[ownFlag]; own {
		return commandVariable(command, f)
	}
	return variableOf(f.Name)
}

func variableOf(name string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// lookUpFlag is what the environment sets a flag of a command to, and by which variable: the command's own one first.
func lookUpFlag(command string, f *pflag.Flag) (text, from string, ok bool) {
	names := []string{commandVariable(command, f)}
	if _, own := f.Annotations[ownFlag]; !own {
		names = append(names, variableOf(f.Name))
	}
	for _, from = range names {
		if text, ok = os.LookupEnv(from); ok {
			return text, from, true
		}
	}
	return "", "", false
}

// fillFlags sets every flag of a command that was not given and has a setting.
func fillFlags(command string, flags *pflag.FlagSet, settings map[string]setting) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || !isSetting(f) {
			return
		}
		s, ok := settings[f.Name]
		from := "the config file"
		if env, name, set := lookUpFlag(command, f); set {
			s, ok, from = setting{text: &env}, true, name
		}
		if !ok {
			return
		}
		if err := s.fillFlag(f); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", from, err))
		}
	})
	return errors.Join(errs...)
}
