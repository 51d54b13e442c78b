// Command feedwater keeps accelerators fed: `feedwater serve` makes batches of decoded and augmented images on a CPU node;
// `feedwater agent` is what the Python package starts beside each trainer. It wires the packages together and does nothing else:
// flags → options → run.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/feedwater-io/feedwater/pipeline/spelling"
)

// version is set when a release is linked.
var version = "dev"

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// usageError marks what the caller should have typed differently.
type usageError struct{ error }

func main() { os.Exit(runCommand(os.Args[1:], os.Stdout, os.Stderr)) }

func runCommand(args []string, stdout, stderr io.Writer) int {
	end := newExitGuard()
	ctx, stop := untilSignal(end.startTimer)
	defer stop()
	defer end.stopTimer()
	ctx = context.WithValue(ctx, exitGuardKey{}, end)
	if len(args) == 1 && args[0] == "--version" { // as other programs are asked
		args = []string{"version"}
	}
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "feedwater: %v\nRun '%s --help' for the options.\n", err, commandPath(root, args))
		return exitUsage
	case errors.As(err, new(notComparedError)):
		fmt.Fprintf(stderr, "feedwater: %v\n", err)
		return exitUsage
	default:
		fmt.Fprintf(stderr, "feedwater: %v\n", err)
		return exitError
	}
}

// untilSignal returns a context that ends with the first SIGINT or SIGTERM, which told is told of. From then on SIGINT ends the process, as usual, and
// SIGTERM does nothing: engines that end a script and what it runs, as Slurm does, send it twice.
func untilSignal(told func()) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	interrupts, terms := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	signal.Notify(terms, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-interrupts:
			told()
		case <-terms:
			told()
		case <-ctx.Done():
		}
		signal.Stop(interrupts)
		cancel()
	}()
	return ctx, func() {
		cancel()
		<-done
		signal.Stop(terms)
	}
}

// commandPath is the command that args name, as far as they do.
func commandPath(root *cobra.Command, args []string) string {
	if c, _, err := root.Find(args); err == nil {
		return c.CommandPath()
	}
	return root.Name()
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "feedwater",
		Short: "Keeps accelerators fed with decoded and augmented images",
		Long: `Feedwater keeps accelerators fed: CPU nodes decode and augment images and stream ready batches to trainers.

  feedwater serve --data photos=/data/photos      on each CPU node
  feedwater.Loader("photos", ..., nodes="HOST:7070")   in the training script

Every flag can also be set by an environment variable (--max-memory: FEEDWATER_MAX_MEMORY) or in a YAML file
given with --config (max-memory: 8GiB). A flag wins over the environment, the environment over the file.
FEEDWATER_SERVE_MAX_MEMORY is that of one command, and goes first. Flags that mean different things to
different commands have such a variable alone, except those of serve; --help of the command names it.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          unknownCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usageError{suggestFlag(c, err)} })
	root.AddCommand(newServe(), newTop(), newDoctor(), newIndex(), newSnapshot(), newPreview(), newVerify(), newScaler(), newAgent(), newMan(), newVersion())
	root.InitDefaultCompletionCmd()
	return root
}

// noArguments is cobra.NoArgs as a mistake of the caller's.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("%s takes no arguments, only flags: what is %q?", c.CommandPath(), args[0])}
}

// unknownCommand refuses what is no command, by the name of the one that is nearest to it.
func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, command := range c.Commands() {
		if command.IsAvailableCommand() {
			names = append(names, command.Name())
		}
	}
	return usageError{fmt.Errorf("unknown command %q%s", args[0], spelling.Suggest(args[0], names))}
}

// suggestFlag is an error about the flags of a command, with the flag that is nearest to one that is not there.
func suggestFlag(c *cobra.Command, err error) error {
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) || len(missing.GetSpecifiedName()) < 2 {
		return err
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	nearest := spelling.Nearest("--"+missing.GetSpecifiedName(), names)
	if nearest == "" { // --help lists them all
		return err
	}
	return fmt.Errorf("%w; did you mean %s?", err, nearest)
}
