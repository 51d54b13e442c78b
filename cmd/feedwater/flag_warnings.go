package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/pflag"
)

// optionWarnings say what a command's options ask for and do not get. The index's flags are those of the command.
func optionWarnings(command string, index *indexPlace, lists *listPlace) []string {
	return slices.Concat(flagWarnings(command, index.flags), index.warnings(lists.dir), lists.warnings())
}

// needs are flags that do nothing without another one.
var needs = []struct{ flag, other string }{
	{"read-cache-limit", "read-cache"},
	{"http-insecure", "http"},
}

// flagWarnings say which of a command's flags, or of the variables that set them, ask for nothing, or for a size that hardly anybody means.
func flagWarnings(command string, flags *pflag.FlagSet) (warnings []string) {
	for _, n := range needs {
		flag, other := flags.Lookup(n.flag), flags.Lookup(n.other)
		if flag != nil && given(flag) && !given(other) {
			warnings = append(warnings, fmt.Sprintf("%s does nothing without %s", named(command, flag), named(command, other)))
		}
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() != "size" {
			return
		}
		if bytes, err := strconv.Atoi(f.Value.String()); err == nil && bytes > 0 && bytes < 1000 { // 1kB is meant
			warnings = append(warnings, fmt.Sprintf("%s is %d bytes: for more write %dMB or %dGiB", named(command, f), bytes, bytes, bytes))
		}
	})
	return warnings
}

// given reports whether a flag has another value than by default.
func given(f *pflag.Flag) bool { return f.Value.String() != f.DefValue }

// named is a flag for people who may have set it by its variable.
func named(command string, f *pflag.Flag) string {
	return fmt.Sprintf("--%s, or %s,", f.Name, variableFor(command, f))
}
