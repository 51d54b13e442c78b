// Command feedwater-nvml prints what NVIDIA GPUs do, one line of JSON per interval; docs/nvml.md has every field. It is a program of
// its own because NVIDIA's library can hang or end the process that calls it: whoever reads the lines takes its absence or death for
// "unknown". It ends when its parent does, when nobody reads its lines any more, and on SIGINT or SIGTERM.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"
)

// version is set when a release is linked.
var version = "dev"

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// intervalMin is the shortest interval: hardware counters are read at most this often.
const intervalMin = 100 * time.Millisecond

// options say what to print.
type options struct {
	interval time.Duration // between two lines, and what the means of a line are over
	once     bool          // one line, then end
	timeout  time.Duration // how long the driver may take to answer
}

func main() { os.Exit(start(os.Args[1:], os.Stderr)) }

// start reads the flags. Its exit may leave calls behind that hang in the driver: nothing can interrupt them but the process's end.
func start(args []string, stderr io.Writer) int {
	o := options{}
	flags := pflag.NewFlagSet("feedwater-nvml", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.interval, "interval", time.Second, "time between two lines, at least 0.1 s; means are over it")
	flags.BoolVar(&o.once, "once", false, "print one line after one interval, then end")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Second, "end with an error if the driver does not answer for so long")
	showVersion := flags.Bool("version", false, "print the version and end")
	flags.Usage = func() {
		fmt.Fprintf(stderr, "Usage: feedwater-nvml [flags]\n\nPrints what NVIDIA GPUs do, one line of JSON per interval.\n\n%s", flags.FlagUsages())
	}
	err := flags.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return exitOK
	case err == nil:
		err = o.check(flags.NArg())
	}
	if err != nil {
		fmt.Fprintf(stderr, "feedwater-nvml: %v\n", err)
		return exitUsage
	}
	if *showVersion {
		_, err = fmt.Println("feedwater-nvml", version)
	} else {
		err = run(o)
	}
	if err != nil {
		fmt.Fprintf(stderr, "feedwater-nvml: %v\n", err)
		return exitError
	}
	return exitOK
}

func (o options) check(arguments int) error {
	switch {
	case arguments > 0:
		return errors.New("takes no arguments")
	case o.interval < intervalMin:
		return fmt.Errorf("--interval %v: at least %v", o.interval, intervalMin)
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %v: must be positive", o.timeout)
	}
	return nil
}
