// Command structure prints how the code is built: sizes of folders and functions, directions of imports, names, and how
// often a law is stated. It reads the source and judges nothing; column "reach" says where the numbers are meant to go.
//
//	make structure                                       this tree
//	go run ./bench/structure --root ../other             another checkout
//	go run ./bench/structure --list one-word             what a measure counts, one name a line
//	go run ./bench/structure --help                      how each measure is defined
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "structure:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("structure", flag.ContinueOnError)
	flags.SetOutput(out)
	root := flags.String("root", ".", "`folder` of the module to measure")
	python := flags.String("python", "python3", "`interpreter` that reads the Python files")
	list := flags.String("list", "", "print what this `measure` counts, and where it is")
	flags.Usage = func() { printHelp(flags) }
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	tree, err := loadTree(*root, *python)
	if err != nil {
		return err
	}
	if *list != "" {
		return printList(out, *list, tree)
	}
	return printTable(out, tree)
}

func printHelp(flags *flag.FlagSet) {
	out := flags.Output()
	fmt.Fprintf(out, "structure prints measures of the code's structure.\n\nFlags:\n")
	flags.PrintDefaults()
	fmt.Fprintf(out, "\n%s\n\nMeasures:\n", scope)
	for _, m := range measures {
		help := strings.ReplaceAll(strings.TrimSpace(m.help), "\n", "\n    ")
		fmt.Fprintf(out, "\n%s (--list %s)\n    %s\n", m.title, m.key, help)
	}
}

func printList(out io.Writer, key string, t *tree) error {
	for _, m := range measures {
		if m.key != key {
			continue
		}
		for _, v := range m.values {
			_, lines := v.read(t)
			for _, line := range lines {
				fmt.Fprintf(out, "%s\t%s\n", v.name, line)
			}
		}
		return nil
	}
	return fmt.Errorf("no measure %q; --help names them", key)
}
