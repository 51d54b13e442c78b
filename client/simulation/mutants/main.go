// Command mutants shows that the simulation can fail: it breaks the product on purpose, one bug at a time, and prints
// which seed caught it and what the checker said. It changes no file: the broken sources are laid over the real ones
// while the test is built.
//
//	go run ./client/simulation/mutants [-seeds 600] [NAME…]
//	go run ./client/simulation/mutants -build FILE NAME    # the program with a bug that deploy/cluster catches
//
// A mutant is a file in testdata: a line that says what it does, then replacements, each of a text that has to be in a
// source once:
//
//	-- client/lease.go --
//		case l.crc != l.header.Crc32C:
//	-- becomes --
//		case false:
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	folder        = "client/simulation/mutants/testdata"
	clusterFolder = folder + "/cluster" // those that deploy/cluster catches, and no seed does
)

func main() {
	seeds := flag.Int("seeds", 600, "within how many seeds each has to be caught")
	program := flag.String("build", "", "write the program with the one mutant to this `file`, and run nothing")
	flag.Parse()
	if *program != "" {
		if err := build(*program, flag.Args()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	survived, err := run(*seeds, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if survived > 0 {
		fmt.Printf("%d were not caught\n", survived)
		os.Exit(1)
	}
}

// build writes the program with the mutant of the only name to a file.
func build(to string, names []string) error {
	all, err := load(clusterFolder, ".")
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(m *mutant) bool { return len(names) == 1 && m.name == names[0] })
	if i < 0 {
		return fmt.Errorf("%v is not the name of one mutant", names)
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := all[i].overlay(dir)
	if err != nil {
		return err
	}
	command := exec.Command("go", "build", "-overlay", overlay, "-o", to, "./cmd/feedwater")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w:\n%s", err, out)
	}
	return nil
}

// run tries the mutants of those names, all if there are none.
func run(seeds int, names []string) (survived int, err error) {
	all, err := load(folder, ".")
	if err != nil {
		return 0, err
	}
	fmt.Printf("| mutant | seeds | what the checker said |\n|---|---:|---|\n")
	for _, m := range all {
		if len(names) > 0 && !slices.Contains(names, m.name) {
			continue
		}
		seed, said, err := m.try(seeds)
		if err != nil {
			return 0, err
		}
		if seed == "" {
			survived++
		}
		fmt.Printf("| %s | %s | %s |\n", m.what, seed, strings.ReplaceAll(said, "|", "/"))
	}
	return survived, nil
}

// mutant is the product with one bug.
type mutant struct {
	name, what string
	sources    map[string]string // by path, with the bug
}

// load reads the mutants of a folder, whose paths are below root. A text that is not in its source exactly once is an
// error: the source has changed, and the mutant has to follow.
func load(folder, root string) ([]*mutant, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil {
		return nil, err
	}
	var all []*mutant
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m := &mutant{name: strings.TrimSuffix(filepath.Base(path), ".txt"), sources: map[string]string{}}
		if err := m.parse(string(text), root); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, m)
	}
	return all, nil
}

var head = regexp.MustCompile(`(?m)^-- (\S+\.go) --\n`)

// parse applies a mutant's replacements to the sources.
func (m *mutant) parse(text, root string) error {
	m.what, text, _ = strings.Cut(text, "\n")
	places := head.FindAllStringSubmatchIndex(text, -1)
	if m.what == "" || len(places) == 0 {
		return fmt.Errorf("it says nothing, or replaces nothing")
	}
	for i, p := range places {
		end := len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		before, after, ok := strings.Cut(text[p[1]:end], "-- becomes --\n")
		if !ok {
			return fmt.Errorf("a replacement without a line \"-- becomes --\"")
		}
		if err := m.replace(filepath.Join(root, text[p[2]:p[3]]), before, after); err != nil {
			return err
		}
	}
	return nil
}

func (m *mutant) replace(path, before, after string) error {
	source, ok := m.sources[path]
	if !ok {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		source = string(b)
	}
	if n := strings.Count(source, before); n != 1 {
		return fmt.Errorf("%s has this %d times, not once:\n%s", path, n, before)
	}
	m.sources[path] = strings.Replace(source, before, after, 1)
	return nil
}

// try runs the seeds and returns the first that fails, "" if none does, and what was said of it.
func (m *mutant) try(seeds int) (seed, said string, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := m.overlay(dir)
	if err != nil {
		return "", "", err
	}
	command := exec.Command("go", "test", "-overlay", overlay, "./client/simulation", "-run", "TestSeeds$", "-v", "-timeout", "15m",
		"-seeds", fmt.Sprint(seeds), "-first")
	out, err := command.CombinedOutput()
	if err == nil {
		return "", "not caught", nil
	}
	if strings.Contains(string(out), "[build failed]") {
		return "", "", fmt.Errorf("%s does not build:\n%s", m.name, out)
	}
	seed, said = read(string(out))
	return seed, said, nil
}

// overlay writes the broken sources, and the file that tells the go command of them.
func (m *mutant) overlay(dir string) (string, error) {
	replace := map[string]string{}
	for path, source := range m.sources {
		real, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		replace[real] = filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(replace[real], []byte(source), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, text, 0o600)
}

var (
	running = regexp.MustCompile(`(?m)^=== RUN +TestSeeds/(\d+)`)
	verdict = regexp.MustCompile(`(?m)^ +\w+_test\.go:\d+: (?:seed \d+: |(a calm run.*))(.*)$`)
	crash   = regexp.MustCompile(`(?m)^(panic|fatal error): (.*)$`)
)

// read finds in what the test printed at which seed it ended, and why.
func read(out string) (seed, said string) {
	seed, said = "?", "it failed"
	if all := running.FindAllStringSubmatch(out, -1); len(all) > 0 {
		seed = all[len(all)-1][1]
	}
	if v := verdict.FindStringSubmatch(out); v != nil {
		return seed, v[1] + v[2]
	}
	if c := crash.FindStringSubmatch(out); c != nil {
		return seed, c[1] + ": " + c[2]
	}
	return seed, said
}
