package main

import (
	"strings"
	"testing"
)

// What is asked for and does nothing, or is a few bytes, is told, whether a flag or a variable says it; what does something is not.
func TestFlagWarnings(t *testing.T) {
	const noCache, noPage = "--read-cache-limit, or FEEDWATER_READ_CACHE_LIMIT, does nothing without --read-cache, or FEEDWATER_READ_CACHE,",
		"--http-insecure, or FEEDWATER_HTTP_INSECURE, does nothing without --http, or FEEDWATER_HTTP,"
	data := "photos=" + anyFolder(t)
	for _, c := range []struct {
		environment map[string]string
		args        []string
		says        string // empty: nothing
	}{
		{nil, nil, ""},
		{nil, []string{"--read-cache-limit", "5GB"}, noCache},
		{map[string]string{"FEEDWATER_READ_CACHE_LIMIT": "5GB"}, nil, noCache},
		{nil, []string{"--read-cache-limit", "5GB", "--read-cache", t.TempDir()}, ""},
		{nil, []string{"--http-insecure"}, noPage},
		{nil, []string{"--http-insecure", "--http", "127.0.0.1:0"}, ""},
		{nil, []string{"--index-copies", "10"}, "--index-copies, or FEEDWATER_INDEX_COPIES, is 10 bytes: for more write 10MB or 10GiB"},
		{map[string]string{"FEEDWATER_KEEP": "8"}, nil, "--keep, or FEEDWATER_KEEP, is 8 bytes: for more write 8MB or 8GiB"},
		{nil, []string{"--index-copies", "0", "--keep", "1kB"}, ""},
		{nil, []string{"--index", "off", "--index-limit", "5GB"}, "--index-limit, or FEEDWATER_INDEX_LIMIT, does nothing"},
	} {
		t.Run("", func(t *testing.T) {
			for name, value := range c.environment {
				t.Setenv(name, value)
			}
			n := start(t, append([]string{"--data", data}, c.args...)...)
			n.stop()
			if log := n.log.String(); strings.Contains(log, "level=WARN") != (c.says != "") || !strings.Contains(log, c.says) {
				t.Errorf("%v %q: %s", c.environment, c.args, log)
			}
		})
	}
}

// The other commands that have these flags tell the same.
func TestFlagWarningsOfOthers(t *testing.T) {
	const says = "does nothing without --read-cache, or FEEDWATER_READ_CACHE,"
	if code, _, errs := call("index", pictures(t, 1), "--cache-dir", t.TempDir(), "--read-cache-limit", "5GB"); code != exitOK || strings.Count(errs, says) != 1 {
		t.Errorf("code %d: %s", code, errs)
	}
	t.Setenv("FEEDWATER_AGENT_HTTP_INSECURE", "true")
	o, err := agentOptionsFromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	if got := flagWarnings(agentCommand, o.flags); len(got) != 1 || got[0] != "--http-insecure, or FEEDWATER_AGENT_HTTP_INSECURE, does nothing without --http, or FEEDWATER_AGENT_HTTP," {
		t.Errorf("%q", got)
	}
}

// Without a terminal, as by ssh with a command or in CI, top says what works there; the doctor asks for a command.
func TestWhatIsMissing(t *testing.T) {
	for args, says := range map[string]string{
		"top":    "top draws on a terminal, and this output is none: --once prints once",
		"doctor": "no command: feedwater doctor -- python train.py",
	} {
		if code, _, errs := call(args); code != exitUsage || !strings.Contains(errs, says) {
			t.Errorf("%s: code %d: %s", args, code, errs)
		}
	}
}

// A page is shown until it is stopped, so that it cannot be shown once, or as JSON.
func TestPageIsNotShownOnce(t *testing.T) {
	for _, flag := range []string{"--once", "--json"} {
		if code, _, errs := call("top", "--page", "127.0.0.1:0", flag); code != exitUsage || !strings.Contains(errs, "leave out --once and --json") {
			t.Errorf("%s: code %d: %s", flag, code, errs)
		}
	}
}
