package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man",
		Short: "Print the manual page: feedwater man | man -l -",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return writeManual(c.OutOrStdout(), c.Root())
		},
	}
}

// writeManual writes the manual page of a program, in roff: what --help of it and of its commands says.
func writeManual(w io.Writer, root *cobra.Command) error {
	m := &manual{}
	m.add(fmt.Sprintf(".TH %s 1 \"\" \"%s %s\"", strings.ToUpper(root.Name()), root.Name(), roffText(version)))
	m.addSection("NAME", root.Name()+` \- `+roffText(root.Short))
	m.addSection("SYNOPSIS", `\fB`+root.Name()+`\fR \fIcommand\fR [\fIflags\fR]`)
	m.addSection("DESCRIPTION", "")
	m.addText(root.Long)
	m.addSection("COMMANDS", "")
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			m.addCommand(c)
		}
	}
	m.addSection("EXIT STATUS", "0: done. 1: it failed, and said why. 2: what was typed is no use of it.")
	_, err := io.WriteString(w, strings.Join(m.lines, "\n")+"\n")
	return err
}

// manual is a page that is being written.
type manual struct{ lines []string }

func (m *manual) add(line string) { m.lines = append(m.lines, line) }

// addSection begins a section with a line of roff; empty: it comes otherwise.
func (m *manual) addSection(title, line string) {
	m.add(".SH " + title)
	if line != "" {
		m.add(line)
	}
}

// addText adds plain text as it is broken into lines; what is indented stays so.
func (m *manual) addText(text string) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		switch line = strings.TrimRight(line, "\n"); {
		case line == "":
			m.add(".PP")
		case strings.HasPrefix(line, " "), strings.HasPrefix(line, "\t"):
			m.add(".br")
			m.add(`\&` + roffText(line))
		default:
			m.add(roffText(line))
		}
	}
}

// addCommand adds what --help of a command says.
func (m *manual) addCommand(c *cobra.Command) {
	c.InitDefaultHelpFlag() // which the line of usage tells of
	m.add(".SS " + roffText(c.UseLine()))
	m.addText(c.Short + ".")
	if c.Long != "" {
		m.add(".PP")
		m.addText(c.Long)
	}
	if c.Example != "" {
		m.add(".PP")
		m.addText(c.Example)
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			m.addFlag(f)
		}
	})
	for _, inner := range c.Commands() {
		if inner.IsAvailableCommand() && inner.Name() != "help" {
			m.addCommand(inner)
		}
	}
}

func (m *manual) addFlag(f *pflag.Flag) {
	kind, usage := pflag.UnquoteUsage(f)
	m.add(".TP")
	line := `\fB` + roffText("--"+f.Name) + `\fR`
	if kind != "" {
		line += ` \fI` + roffText(kind) + `\fR`
	}
	m.add(line)
	if plain := f.DefValue; plain != "" && plain != "false" && plain != "[]" && plain != "0" {
		usage += fmt.Sprintf(" (default %s)", plain)
	}
	m.addText(usage)
}

// roffText is a line of text that roff takes as it is.
func roffText(line string) string {
	line = strings.NewReplacer(`\`, `\e`, `-`, `\-`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		return `\&` + line
	}
	return line
}
