package main

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

	"github.com/feedwater-io/feedwater/pipeline/spelling"
	"github.com/feedwater-io/feedwater/server/admission"
)

// identities is a flag of what each identity may do, by its name; "*" is all others.
type identities map[string]identity

// identity is one of them, as it stands in the config file. docs/configuration.md describes the members.
type identity struct {
	Roots          []string `yaml:"roots"`
	MaxStreams     int      `yaml:"max-streams"`
	MaxWants       int      `yaml:"max-wants"`
	MaxMemory      byteSize `yaml:"max-memory"`
	CallsPerSecond float64  `yaml:"calls-per-second"`
	WantsPerSecond float64  `yaml:"wants-per-second"`
	BytesPerSecond byteSize `yaml:"bytes-per-second"`
	Weight         float64  `yaml:"weight"`
	Watch          bool     `yaml:"watch"`
}

// identityKeys are the members of an identity.
var identityKeys = []string{"roots", "max-streams", "max-wants", "max-memory", "calls-per-second", "wants-per-second", "bytes-per-second", "weight", "watch"}

// Set implements pflag.Value. All identities come at once.
func (i *identities) Set(s string) error {
	var raw map[string]map[string]yaml.Node
	if err := decodeYAML(s, &raw); err != nil {
		return fmt.Errorf("not identities, as {NAME: {roots: [ROOT]}}: %w", err)
	}
	all := identities{}
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
		if !slices.Contains(identityKeys, key) {
			return fmt.Errorf("%q is no member of an identity%s", key, suggestName(key, identityKeys))
		}
		value := members[key]
		alone := yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: key}, &value}}
		if err := alone.Decode(new(identity)); err != nil {
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

// SetNode implements structured.
func (i *identities) SetNode(n *yaml.Node) error {
	var b bytes.Buffer
	if err := yaml.NewEncoder(&b).Encode(n); err != nil {
		return err
	}
	return i.Set(b.String())
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (b *byteSize) UnmarshalYAML(n *yaml.Node) error { return b.Set(n.Value) }

// String implements pflag.Value.
func (i *identities) String() string { return strings.Join(slices.Sorted(maps.Keys(*i)), ",") }

// Type implements pflag.Value.
func (i *identities) Type() string { return "YAML" }

// checkRules finds roots that the node does not serve, and what is no limit.
func (i identities) checkRules(roots []string) error {
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

// toRules are what the server makes of them.
func (i identities) toRules() map[string]admission.Rule {
	rules := map[string]admission.Rule{}
	for name, one := range i {
		rules[name] = admission.Rule{
			Roots: one.Roots, Streams: one.MaxStreams, Wants: one.MaxWants, Bytes: int64(one.MaxMemory),
			CallsPerSecond: one.CallsPerSecond, WantsPerSecond: one.WantsPerSecond, BytesPerSecond: float64(one.BytesPerSecond), Weight: one.Weight, Watch: one.Watch,
		}
	}
	return rules
}

// suggestName suggests the name that a wrong one is nearest to.
func suggestName(wrong string, names []string) string {
	best, least := "", 1+max(2, len(wrong)/3)
	for _, name := range names {
		if d := spelling.Edits(wrong, name); d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return "; there are " + strings.Join(names, ", ")
	}
	return "; did you mean " + best + "?"
}
