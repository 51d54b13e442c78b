// Package revision knows the units that decide what a batch's bytes are, and of which revision this build has each. A
// unit is a part of the code that a plan uses or does not: the order, the draws, an op, a family of kernels, a codec.
// Two builds make the same bytes of a plan if they have the same revisions of all units that it uses. The table is
// committed; a digest of each unit's source stands beside its revision, so that neither changes without the other.
// Errors of the package are those of a broken table, which its tests exclude. It imports nothing of ours.
package revision

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The units that are neither ops nor codecs nor kernels.
const (
	// Order is which sample stands at which position, here and in Python.
	Order = "order"
	// Draws is the random words and numbers that ops draw.
	Draws = "draws"
	// Batch is what every plan uses: how transforms are read, drawn and joined, pictures resized, and arrays laid out.
	Batch = "batch"
	// Files is how a file's format is found, and what limits say of it.
	Files = "files"
	// EXIF is how EXIF data turns a picture, in plans that ask for it.
	EXIF = "exif"
	// Oversize is what becomes of a picture that is larger, by the plan's ops, than any that is made: it may be cut to
	// one that is.
	Oversize = "oversize"
	// LastHop is what is done to pixels beside the trainer.
	LastHop = "lasthop"
)

// Op is the unit of an op by the name that plans have for it.
func Op(name string) string { return "op/" + name }

// Codec is the unit of a format by its name in package imageformat.
func Codec(format string) string { return "codec/" + format }

// Set is revisions by unit.
type Set map[string]uint32

//go:embed table.txt
var text string

var table, broken = Parse(text)

// Build returns the revisions of this build: a copy.
func Build() Set {
	if broken != nil {
		panic(broken)
	}
	s := make(Set, len(table))
	for name, u := range table {
		s[name] = u.Revision
	}
	return s
}

// Plan is what of a plan decides which units it uses.
type Plan struct {
	// Ops by name, those inside others too.
	Ops []string
	// ApplyEXIF says that EXIF data turns its pictures.
	ApplyEXIF bool
}

// Of returns the part of s that a plan uses whatever its files are: Order, Draws, Batch, Files, EXIF if it applies
// that, its ops, and the kernels of all these. A unit that s does not have is of revision 0. Which kernels those are is
// known of this build.
func (s Set) Of(p Plan) Set {
	names := []string{Order, Draws, Batch, Files}
	if p.ApplyEXIF {
		names = append(names, EXIF)
	}
	for _, op := range p.Ops {
		names = append(names, Op(op))
	}
	return s.with(names)
}

// OfFormat returns the part of s that decodes files of a format: its codec and the kernels of that.
func (s Set) OfFormat(format string) Set { return s.with([]string{Codec(format)}) }

// OfOversize returns the part of s that decides what becomes of pictures beyond the limits.
func (s Set) OfOversize() Set { return s.with([]string{Oversize}) }

func (s Set) with(names []string) Set {
	part := Set{}
	for _, name := range names {
		part[name] = s[name]
		for _, used := range table[name].Uses {
			part[used] = s[used]
		}
	}
	return part
}

// Differing returns the units of s that other has in another revision or not at all, sorted.
func (s Set) Differing(other Set) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if s[name] != other[name] {
			names = append(names, name)
		}
	}
	return names
}

// Unit is a line of the table.
type Unit struct {
	// Revision counts from 1.
	Revision uint32
	// Digest is of the unit's source; "-" where there is none any more.
	Digest string
	// Uses are the units that this one calls and that not all plans use, sorted.
	Uses []string
}

// Parse reads a table: a line for each unit, of its name, its revision, its digest, and the units that it uses.
func Parse(text string) (map[string]Unit, error) {
	units := map[string]Unit{}
	for i, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if len(f) < 3 {
			return nil, fmt.Errorf("revision: line %d: %d words, not a name, a revision and a digest", i+1, len(f))
		}
		n, err := strconv.ParseUint(f[1], 10, 32)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("revision: line %d: %q is no revision", i+1, f[1])
		}
		if _, twice := units[f[0]]; twice {
			return nil, fmt.Errorf("revision: line %d: %s is there twice", i+1, f[0])
		}
		units[f[0]] = Unit{Revision: uint32(n), Digest: f[2], Uses: f[3:]}
	}
	return units, nil
}

// heading is what a table begins with.
const heading = "# The units that decide bytes: name, revision, digest of the source they are made of, units that they use.\n" +
	"# docs/revisions.md says what to do when a digest has moved.\n"

// Format writes a table that Parse reads, in the order of names.
func Format(units map[string]Unit) string {
	var b strings.Builder
	b.WriteString(heading)
	for _, name := range slices.Sorted(maps.Keys(units)) {
		u := units[name]
		fmt.Fprintln(&b, strings.Join(append([]string{name, strconv.FormatUint(uint64(u.Revision), 10), u.Digest}, u.Uses...), " "))
	}
	return b.String()
}
