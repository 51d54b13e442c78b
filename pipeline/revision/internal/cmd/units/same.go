package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/revision"
	"github.com/feedwater-io/feedwater/pipeline/revision/internal/corpus"
)

// same compares what this tree makes of a corpus with what the commit makes whose table this is, and notes the source
// of units of which nothing differs: of these, or of all that have changed. base is that commit; empty: the one that
// changed the table last.
func (t *tree) same(only []string, base string, seed uint64, out io.Writer) error {
	names := t.changed()
	if len(only) > 0 {
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(only, name) })
	}
	for _, name := range names {
		if _, known := t.table[name]; !known || t.found[name].Digest == "" {
			return fmt.Errorf("%s is not in both: make raise UNITS=%s first", name, name)
		}
	}
	if len(names) == 0 {
		fmt.Fprintln(out, "nothing has changed")
		return nil
	}
	work, err := os.MkdirTemp("", "units")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	c := comparison{work: work, python: t.python, out: out, used: map[string]int{}, differ: map[string][]string{}}
	before, done, err := t.checkOut(base, filepath.Join(work, "base"), names, &c)
	defer done()
	if err != nil {
		return err
	}
	c.trees = [2]string{before, t.dir}
	if err := c.run(names, seed); err != nil {
		return err
	}
	return t.note(names, &c)
}

// note writes the source of all units of which nothing differs; an error names the others.
func (t *tree) note(names []string, c *comparison) error {
	var said []string
	for _, name := range names {
		differ := c.differ[name]
		switch line := t.table[name]; {
		case c.used[name] == 0:
			said = append(said, fmt.Sprintf("%s: no case uses it", name))
		case len(differ) > 0:
			said = append(said, fmt.Sprintf("%s: %d of %d cases differ, as %q: make raise UNITS=%s", name, len(differ), c.used[name], differ[0], name))
		default:
			fmt.Fprintf(c.out, "%s: the same in %d cases\n", name, c.used[name])
			line.Digest, line.Uses = t.found[name].Digest, t.found[name].Uses
			t.table[name] = line
		}
	}
	if err := t.write(); err != nil {
		return err
	}
	if len(said) > 0 {
		return errors.New("not the same\n" + strings.Join(said, "\n"))
	}
	return nil
}

// checkOut puts the commit into a folder and makes sure that its table is of its own source. c learns which units had
// another revision there, or were not there.
func (t *tree) checkOut(base, dir string, names []string, c *comparison) (path string, done func(), err error) {
	done = func() {}
	if base == "" {
		last, err := command(t.dir, nil, "git", "log", "-1", "--format=%H", "--", t.path)
		if err != nil {
			return "", done, err
		}
		base = strings.TrimSpace(last)
	}
	if _, err := command(t.dir, nil, "git", "worktree", "add", "--detach", dir, base); err != nil {
		return "", done, err
	}
	done = func() { _, _ = command(t.dir, nil, "git", "worktree", "remove", "--force", dir) }
	text, err := os.ReadFile(filepath.Join(dir, "pipeline", "revision", "table.txt"))
	if err != nil {
		return "", done, err
	}
	table, err := revision.Parse(string(text))
	if err != nil {
		return "", done, err
	}
	for name, line := range t.table {
		switch was, there := table[name]; {
		case !there:
			c.added = append(c.added, name)
		case was.Revision != line.Revision:
			c.raised = append(c.raised, name)
		}
	}
	for _, name := range names {
		if was, is := table[name], t.table[name]; was.Digest != is.Digest || was.Revision != is.Revision {
			return "", done, fmt.Errorf("%s has another line in %s: give -base, a commit that has this table", name, base)
		}
	}
	_, err = command(dir, nil, "go", "run", "-trimpath", "./pipeline/revision/internal/cmd/units", "-python", t.python, "check")
	if err != nil && (!strings.Contains(err.Error(), "have changed") || slices.ContainsFunc(names, func(name string) bool {
		return strings.Contains(err.Error(), "\n"+name+" is not the source")
	})) {
		return "", done, fmt.Errorf("the table of %s is not that of its source: give -base, a commit of which it is\n%w", base, err)
	}
	return dir, done, t.lend(dir)
}

// lend gives a tree that is older than the command that runs a corpus this tree's.
func (t *tree) lend(dir string) error {
	for _, part := range []string{"cmd/vectors", "corpus"} {
		part = filepath.Join("pipeline", "revision", "internal", filepath.FromSlash(part))
		if _, err := os.Stat(filepath.Join(dir, part)); err == nil {
			continue
		}
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join(t.dir, part))); err != nil {
			return err
		}
	}
	return nil
}

// command runs a program and returns what it writes.
func command(dir string, environment []string, name string, arguments ...string) (string, error) {
	run := exec.Command(name, arguments...) //nolint:gosec // ours
	run.Dir, run.Env = dir, append(os.Environ(), environment...)
	var trouble strings.Builder
	run.Stderr = &trouble
	out, err := run.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(arguments, " "), err, strings.TrimSpace(trouble.String()))
	}
	return string(out), nil
}

// comparison is of two trees.
type comparison struct {
	work   string
	trees  [2]string
	python string
	out    io.Writer
	added  []string            // units that only this tree has
	raised []string            // units that have had another revision: what uses these is not shared any more
	used   map[string]int      // by unit: cases
	differ map[string][]string // by unit: those that are not the same
}

// run compares the trees in all that the units decide.
func (c *comparison) run(names []string, seed uint64) error {
	dir := filepath.Join(c.work, "corpus")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	cases, err := corpus.Write(dir, c.trees[1], seed, names, c.added)
	if err != nil {
		return err
	}
	units := map[string][]string{"order": {revision.Order, revision.Draws}, "draws": {revision.Draws}}
	for _, k := range cases {
		units[k.Name] = k.Units
	}
	if slices.ContainsFunc(names, func(name string) bool { return name != revision.LastHop }) {
		if err := c.runVectors(dir, units); err != nil {
			return err
		}
	}
	if slices.Contains(names, revision.LastHop) || slices.Contains(names, revision.Order) {
		return c.runLoops(filepath.Join(dir, corpus.LoopsFolder))
	}
	return nil
}

// runVectors compares batches of nodes, with all kernels that this processor has. Where the other tree lacks a level, its
// best one takes its place: all make the same bytes.
func (c *comparison) runVectors(dir string, units map[string][]string) error {
	var programs [2]string
	for i, tree := range c.trees {
		programs[i] = filepath.Join(c.work, fmt.Sprintf("vectors%d", i))
		if _, err := command(tree, nil, "go", "build", "-trimpath", "-o", programs[i], "./pipeline/revision/internal/cmd/vectors"); err != nil {
			return err
		}
	}
	for _, level := range kernel.Levels() {
		var said [2]string
		for i, program := range programs {
			var err error
			said[i], err = command(c.trees[i], nil, program, dir, level)
			if err != nil && strings.Contains(err.Error(), kernel.NotRunnable) {
				said[i], err = command(c.trees[i], nil, program, dir, "")
			}
			if err != nil {
				return err
			}
		}
		if err := c.compare(level, said, func(name string) []string { return units[name] }); err != nil {
			return err
		}
	}
	return nil
}

// runLoops compares what training loops get.
func (c *comparison) runLoops(folder string) error {
	var said [2]string
	script := filepath.Join(c.work, "loops.py")
	if err := os.WriteFile(script, []byte(corpus.Loops), 0o600); err != nil {
		return err
	}
	for i, tree := range c.trees {
		program := filepath.Join(c.work, fmt.Sprintf("feedwater%d", i))
		if _, err := command(tree, nil, "go", "build", "-trimpath", "-o", program, "./cmd/feedwater"); err != nil {
			return err
		}
		var err error
		environment := []string{"FEEDWATER_BINARY=" + program, "PYTHONPATH=" + filepath.Join(tree, "python")}
		if said[i], err = command(c.work, environment, c.python, script, folder); err != nil {
			return err
		}
	}
	return c.compare("loops", said, func(name string) []string {
		unit, _, _ := strings.Cut(name, " ")
		return []string{unit}
	})
}

// compare notes which lines differ. Each is the name of a case and what came of it.
func (c *comparison) compare(what string, said [2]string, units func(name string) []string) error {
	was := map[string]string{}
	for line := range strings.Lines(said[0]) {
		name, digest, _ := strings.Cut(line, "\t")
		was[name] = digest
	}
	n, differ, apart := 0, 0, 0
	for line := range strings.Lines(said[1]) {
		name, digest, _ := strings.Cut(line, "\t")
		n++
		other := was[name] != digest
		if other {
			differ++
		}
		if other && slices.ContainsFunc(units(name), func(u string) bool { return slices.Contains(c.raised, u) }) {
			apart++
			other = false
		}
		for _, u := range units(name) {
			c.used[u]++
			if other {
				c.differ[u] = append(c.differ[u], what+" "+name)
			}
		}
	}
	fmt.Fprintf(c.out, "%s: %d of %d cases differ, %d of them by a unit that was raised\n", what, differ, n, apart)
	if n != len(was) {
		return fmt.Errorf("%s: %d cases before, %d now", what, len(was), n)
	}
	return nil
}
