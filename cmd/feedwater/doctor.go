package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// checkPython is how long a Python may take to say whether it has the package: torch is not imported.
const checkPython = 30 * time.Second

// doctorModule is what the command hands over to.
const doctorModule = "feedwater.doctor"

func newDoctor() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor [FLAGS] -- COMMAND",
		Short: "Run a training command and say whether data is what it waits for",
		Long: `Runs a training command, unchanged, and says after 200 steps and at its end whether its data loading is what it waits for, what that costs,
and what to do. It looks into every Python that the command starts, at torch's DataLoader and at feedwater.Loader; order, values and random
numbers stay as they are.

It is part of the Python package; the first of these that has it is used: $FEEDWATER_PYTHON, the Python that the command begins with, the
one beside this program, python3 and python on PATH. Flags are the package's own: feedwater doctor -h.

Exit code: the command's own if it is not 0; else 0 healthy or not the data, 3 data-bound, 1 errors or unknown.`,
		Example: `  feedwater doctor -- python train.py
  feedwater doctor --json verdict.json --try num_workers=4 -- torchrun --nproc-per-node 2 train.py`,
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("no command: feedwater doctor -- python train.py")}
			}
			if len(args) == 1 && args[0] == "--help" {
				return c.Help()
			}
			python, err := findPython(c.Context(), args)
			if err != nil {
				return err
			}
			// The command is then a child of that Python, in this process group and terminal.
			return fmt.Errorf("%s: %w", python, syscall.Exec(python, append([]string{python, "-m", doctorModule}, args...), os.Environ()))
		},
	}
}

// findPython is a Python that has the package; args are those of `feedwater doctor`.
func findPython(ctx context.Context, args []string) (string, error) {
	var tried []string
	for _, name := range pythonCandidates(args) {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if err = hasDoctor(ctx, path); err == nil {
			return path, nil
		}
		tried = append(tried, fmt.Sprintf("%s (%v)", path, err))
	}
	if len(tried) == 0 {
		return "", errors.New("doctor is part of the Python package, and there is no Python on PATH: name one by FEEDWATER_PYTHON")
	}
	return "", fmt.Errorf("doctor is part of the Python package, which none of these has: %s; pip install feedwater there, or name another by FEEDWATER_PYTHON",
		strings.Join(tried, ", "))
}

// pythonCandidates are the candidates, best first. FEEDWATER_PYTHON is alone if it is set.
func pythonCandidates(args []string) []string {
	if named := os.Getenv("FEEDWATER_PYTHON"); named != "" {
		return []string{named}
	}
	var names []string
	for i, arg := range args {
		if arg == "--" && i+1 < len(args) && strings.HasPrefix(filepath.Base(args[i+1]), "python") {
			names = append(names, args[i+1])
			break
		}
	}
	if self, err := os.Executable(); err == nil {
		names = append(names, filepath.Join(filepath.Dir(self), "python3"))
	}
	return append(names, "python3", "python")
}

// hasDoctor says why a Python cannot run the doctor; nil if it can.
func hasDoctor(ctx context.Context, python string) error {
	ctx, cancel := context.WithTimeout(ctx, checkPython)
	defer cancel()
	out, err := exec.CommandContext(ctx, python, "-c", "import "+doctorModule).CombinedOutput()
	if err == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return errors.New(last)
	}
	return err
}
