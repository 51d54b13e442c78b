package main

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/pflag"
)

// logOptions are the flags that say what is logged, and how.
type logOptions struct {
	format string
	level  string
}

func (o *logOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.format, "log-format", "text", "text or json")
	f.StringVar(&o.level, "log-level", "info", "debug, info, warn or error")
}

func (o *logOptions) checkFlags() error {
	if o.format != "text" && o.format != "json" {
		return fmt.Errorf("--log-format %q is neither text nor json", o.format)
	}
	if new(slog.Level).UnmarshalText([]byte(o.level)) != nil {
		return fmt.Errorf("--log-level %q is none of debug, info, warn, error", o.level)
	}
	return nil
}

// newLog is the log that the flags describe, which check has found good.
func (o *logOptions) newLog(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(o.level)) // check has seen it
	if o.format == "json" {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: inSeconds}))
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// inSeconds writes durations as numbers of seconds. The package's own would be nanoseconds, without saying so.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}
