// Package identities reads what a node lets each identity do: a flag, or a mapping of the configuration file.
package identities

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/bytesize"
	"github.com/feedwater-io/feedwater/pipeline/spelling"
	"github.com/feedwater-io/feedwater/server/admission"
)

// Map is a flag of what each identity may do, by its name; "*" is all others.
type Map map[string]Identity

// Identity is one of them, as it stands in the config file. docs/configuration.md describes the members.
type Identity struct {
	Roots          []string      `yaml:"roots"`
	MaxStreams     int           `yaml:"max-streams"`
	MaxWants       int           `yaml:"max-wants"`
	MaxMemory      bytesize.Size `yaml:"max-memory"`
	CallsPerSecond float64       `yaml:"calls-per-second"`
	WantsPerSecond float64       `yaml:"wants-per-second"`
	BytesPerSecond bytesize.Size `yaml:"bytes-per-second"`
	Weight         float64       `yaml:"weight"`
	Watch          bool          `yaml:"watch"`
}

// Keys are the members of an identity.
var Keys = []string{"roots", "max-streams", "max-wants", "max-memory", "calls-per-second", "wants-per-second", "bytes-per-second", "weight", "watch"}

// Set implements pflag.Value. All identities come at once.
func (i *Map) Set(s string) error {
	var raw map[string]map[string]yaml.Node
	if err := decodeYAML(s, &raw); err != nil {
		return fmt.Errorf("not identities, as {NAME: {roots: [ROOT]}}: %w", err)
	}
	all := Map{}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		if err := checkMembers(raw[name]); err != nil {
			return fmt.Errorf("identity %s: %w", name, err)
		}
	}
	if err := decodeYAML(s, &all); err != nil {
		return err
	}
	*i = all
	return nil
}

// checkMembers finds the member of an identity that is none, or has no value of its kind.
func checkMembers(members map[string]yaml.Node) error {
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(Keys, key) {
			return fmt.Errorf("%q is no member of an identity%s", key, spelling.Suggest(key, Keys))
		}
		value := members[key]
		alone := yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: key}, &value}}
		if err := alone.Decode(new(Identity)); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func decodeYAML(s string, v any) error {
	d := yaml.NewDecoder(strings.NewReader(s))
	if err := d.Decode(v); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// SetNode sets it to a mapping of YAML.
func (i *Map) SetNode(n *yaml.Node) error {
	var b bytes.Buffer
	if err := yaml.NewEncoder(&b).Encode(n); err != nil {
		return err
	}
	return i.Set(b.String())
}

// String implements pflag.Value.
func (i *Map) String() string { return strings.Join(slices.Sorted(maps.Keys(*i)), ",") }

// Type implements pflag.Value.
func (i *Map) Type() string { return "YAML" }

// CheckRules finds roots that the node does not serve, and what is no limit.
func (i Map) CheckRules(roots []string) error {
	for _, name := range slices.Sorted(maps.Keys(i)) {
		one := i[name]
		for _, root := range one.Roots {
			if root != "*" && !slices.Contains(roots, root) {
				return fmt.Errorf("identity %s: there is no root %q; --data has %s", name, root, strings.Join(roots, ", "))
			}
		}
		for _, limit := range []struct {
			key   string
			value float64
		}{
			{"max-streams", float64(one.MaxStreams)}, {"max-wants", float64(one.MaxWants)},
			{"calls-per-second", one.CallsPerSecond}, {"wants-per-second", one.WantsPerSecond}, {"weight", one.Weight},
		} {
			if !(limit.value >= 0) || math.IsInf(limit.value, 1) { // NaN is not below 0
				return fmt.Errorf("identity %s: %s: a limit of %g; it is a number from 0 on, and 0 is none", name, limit.key, limit.value)
			}
		}
	}
	return nil
}

// Rules are what the server makes of them.
func (i Map) Rules() map[string]admission.Rule {
	rules := map[string]admission.Rule{}
	for name, one := range i {
		rules[name] = admission.Rule{
			Roots: one.Roots, Streams: one.MaxStreams, Wants: one.MaxWants, Bytes: int64(one.MaxMemory),
			CallsPerSecond: one.CallsPerSecond, WantsPerSecond: one.WantsPerSecond, BytesPerSecond: float64(one.BytesPerSecond), Weight: one.Weight, Watch: one.Watch,
		}
	}
	return rules
}
