package main

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The manual page has every command and every flag that --help lists, and no word of roff but what is meant.
func TestManualSaysWhatHelpSays(t *testing.T) {
	var page bytes.Buffer
	if code := runCommand([]string{"man"}, &page, &page); code != exitOK {
		t.Fatal(page.String())
	}
	text := page.String()
	if !strings.HasPrefix(text, ".TH FEEDWATER 1 ") {
		t.Errorf("it begins with %.40q", text)
	}
	commands := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, inner := range c.Commands() {
			if !inner.IsAvailableCommand() || inner.Name() == "help" {
				continue
			}
			commands++
			inner.InitDefaultHelpFlag()
			if !strings.Contains(text, "\n.SS "+roffText(inner.UseLine())+"\n") {
				t.Errorf("%s is missing", inner.CommandPath())
			}
			inner.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if f.Name != "help" && f.Hidden == strings.Contains(text, "\n"+`\fB`+roffText("--"+f.Name)+`\fR`) {
					t.Errorf("%s: --%s is there only if it is hidden", inner.CommandPath(), f.Name)
				}
			})
			walk(inner)
		}
	}
	walk(newRoot())
	if commands < 11 {
		t.Errorf("%d commands", commands)
	}
	requests := strings.Fields(".TH .SH .SS .PP .TP .br")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, ".") && !slices.Contains(requests, strings.Fields(line)[0]) || strings.HasPrefix(line, "'") {
			t.Errorf("%q is a request of roff", line)
		}
	}
	if program, err := exec.LookPath("groff"); err == nil {
		c := exec.CommandContext(t.Context(), program, "-man", "-ww", "-z")
		c.Stdin = &page
		if said, err := c.CombinedOutput(); err != nil || len(said) > 0 {
			t.Errorf("%v: %s", err, said)
		}
	}
}

func TestLinesForRoff(t *testing.T) {
	for line, want := range map[string]string{".x": `\&.x`, "'x": `\&'x`, `a\b--c`: `a\eb\-\-c`, "x.": "x."} {
		if got := roffText(line); got != want {
			t.Errorf("%q is %q, not %q", line, got, want)
		}
	}
}

func TestHelpListsCompletion(t *testing.T) {
	var page bytes.Buffer
	if code := runCommand([]string{"--help"}, &page, &page); code != exitOK || !strings.Contains(page.String(), "\n  completion ") {
		t.Errorf("%d: %s", code, page.String())
	}
}
