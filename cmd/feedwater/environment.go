package main

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/feedwater-io/feedwater/pipeline/spelling"
)

// otherVariables are those that no flag has: of the Python package, of the doctor, of programs that are found by them.
var otherVariables = []string{
	"FEEDWATER_AGENT_PIDFD", "FEEDWATER_BINARY", "FEEDWATER_CONFIG", "FEEDWATER_INSECURE", "FEEDWATER_KERNELS", "FEEDWATER_NVML", "FEEDWATER_PYTHON",
	"FEEDWATER_DOCTOR_BURSTS", "FEEDWATER_DOCTOR_DIR", "FEEDWATER_DOCTOR_REPLAY", "FEEDWATER_DOCTOR_TRY", scalerEnv,
	"FEEDWATER_TLS", "FEEDWATER_TLS_CA", "FEEDWATER_TLS_CERT", "FEEDWATER_TLS_KEY", "FEEDWATER_TLS_SERVER_NAME", "FEEDWATER_TOKEN_FILE",
}

// serviceVariable matches what Kubernetes sets in each pod for a Service that is called feedwater, or feedwater-something.
var serviceVariable = regexp.MustCompile(`_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$`)

// commandFlags are the flags that variables may set, by command.
func commandFlags() map[string]*pflag.FlagSet {
	all := map[string]*pflag.FlagSet{agentCommand: (&agentOptions{}).flagSet()}
	for _, c := range newRoot().Commands() {
		if c.Flags().Lookup("config") != nil {
			all[c.Name()] = c.Flags()
		}
	}
	return all
}

// variablesOf are the names that set flags, each with the flag's default, and what is meant by names that several commands have only with their own
// name before them.
func variablesOf(commands map[string]*pflag.FlagSet) (known map[string]bool, meant map[string][]string) {
	known, meant = map[string]bool{}, map[string][]string{}
	for _, name := range otherVariables {
		known[name] = true
	}
	for _, command := range slices.Sorted(maps.Keys(commands)) {
		commands[command].VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" {
				return
			}
			own := commandVariable(command, f)
			known[own] = true
			if _, alone := f.Annotations[ownFlag]; alone {
				meant[variableOf(f.Name)] = append(meant[variableOf(f.Name)], own)
				return
			}
			known[variableOf(f.Name)] = true
		})
	}
	return known, meant
}

// environmentWarnings names variables of Feedwater's that set nothing, with what is nearest, and those whose value another command than the one
// that runs would refuse.
func environmentWarnings(running string, environ []string) (warnings []string) {
	commands := commandFlags()
	known, meant := variablesOf(commands)
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) || known[name] || serviceVariable.MatchString(name) {
			continue
		}
		if several := meant[name]; several != nil {
			warnings = append(warnings, fmt.Sprintf("%s sets nothing: write %s", name, strings.Join(several, " or ")))
		} else if near := nearestVariable(name, known); near != "" {
			warnings = append(warnings, fmt.Sprintf("%s is no variable of Feedwater, and sets nothing; did you mean %s?", name, near))
		}
	}
	for _, command := range slices.Sorted(maps.Keys(commands)) {
		if command == running {
			continue
		}
		if err := fillFlags(command, commands[command], nil); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if text := fmt.Sprintf("%s; `feedwater %s` will refuse it", line, command); !refusedBy(warnings, line) {
					warnings = append(warnings, text)
				}
			}
		}
	}
	return warnings
}

// refusedBy reports whether a value has been told of already, for another command.
func refusedBy(warnings []string, line string) bool {
	return slices.ContainsFunc(warnings, func(w string) bool { return strings.HasPrefix(w, line+";") })
}

// nearestVariable is what a wrong name is likely to mean: one that differs in a letter or two, of which it is the beginning, or of which one word has
// another ending. Empty: nothing is, and it may be another program's.
func nearestVariable(wrong string, known map[string]bool) string {
	text, names := strings.TrimPrefix(wrong, envPrefix), slices.Sorted(maps.Keys(known))
	best, least := "", 1+max(1, min(2, len(text)/4))
	for _, name := range names {
		if d := slips(text, strings.TrimPrefix(name, envPrefix)); d < least {
			best, least = name, d
		}
	}
	if best != "" || len(text) < 4 {
		return best
	}
	at := slices.IndexFunc(names, func(name string) bool {
		return strings.HasPrefix(name, wrong+"_") || strings.HasPrefix(name, wrong) && len(name)-len(wrong) <= 3 || endsOtherwise(text, strings.TrimPrefix(name, envPrefix))
	})
	if at < 0 {
		return ""
	}
	return names[at]
}

// slips are the edits that make b of a; two neighbours in each other's place are one.
func slips(a, b string) int {
	for i := range min(len(a), len(b)) - 1 {
		if a[i] != b[i] {
			if a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:] {
				return 1
			}
			break
		}
	}
	return spelling.Edits(a, b)
}

// endsOtherwise reports whether two names of several words have the same words but for one, whose first three letters are the same.
func endsOtherwise(a, b string) bool {
	mine, others := strings.Split(a, "_"), strings.Split(b, "_")
	if len(mine) != len(others) || len(mine) < 2 {
		return false
	}
	alike := 0
	for i, word := range mine {
		switch other := others[i]; {
		case word == other:
		case len(word) < 3 || !strings.HasPrefix(other, word[:3]):
			return false
		default:
			alike++
		}
	}
	return alike == 1
}

// warnOfEnvironment logs environmentWarnings.
func warnOfEnvironment(running string, log *slog.Logger) {
	for _, w := range environmentWarnings(running, os.Environ()) {
		log.Warn("environment: " + w)
	}
}
