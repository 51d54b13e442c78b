package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/bytesize"
)

// settings are flags of every kind.
type settings struct {
	data    folders
	listen  string
	workers int
	yes     bool
	size    bytesize.Size
	wait    time.Duration
}

// fill runs a command with the flags of settings over a config file; an empty text is none.
func fill(t *testing.T, text string, args ...string) (settings, error) {
	t.Helper()
	s := settings{data: folders{}, listen: "standard"}
	c := &cobra.Command{Use: "test", SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error { return nil }}
	f := c.Flags()
	f.Var(s.data, "data", "")
	f.StringVar(&s.listen, "listen", s.listen, "")
	f.IntVar(&s.workers, "workers", 0, "")
	f.BoolVar(&s.yes, "yes", false, "")
	f.Var(&s.size, "max-memory", "")
	f.DurationVar(&s.wait, "wait", 0, "")
	addConfig(c)
	if text != "" {
		file := filepath.Join(t.TempDir(), "feedwater.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append([]string{"--config", file}, args...)
	}
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	return s, err
}

func TestFlagWinsOverEnvironmentOverFile(t *testing.T) {
	const text = "listen: file\nworkers: 1\nmax-memory: 1MiB\nwait: 1s\ndata: {f: /file}\n"
	t.Setenv("FEEDWATER_LISTEN", "environment")
	t.Setenv("FEEDWATER_WORKERS", "2")
	t.Setenv("FEEDWATER_MAX_MEMORY", "2MiB")
	t.Setenv("FEEDWATER_DATA", "e=/environment,g=/more")
	s, err := fill(t, text, "--listen", "flag", "--workers=3")
	if err != nil {
		t.Fatal(err)
	}
	if s.listen != "flag" || s.workers != 3 || s.size != 2<<20 || s.wait != time.Second || s.data.String() != "e=/environment,g=/more" {
		t.Errorf("%+v", s)
	}
	s, err = fill(t, text, "--data", "a=/flag", "--data", "b=/flag")
	if err != nil || s.data.String() != "a=/flag,b=/flag" || s.listen != "environment" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestConfigFile(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "standard",
		"# nothing\n":                      "standard",
		"---\n":                            "standard",
		"listen: a":                        "a",
		"listen: \"\"":                     "",
		"listen: [a]":                      "a",
		"data: &x {one: /1}\nlisten: &l b": "b",
		"workers: &n 3\nmax-memory: *n\nlisten: c": "c",
	} {
		s, err := fill(t, text)
		if err != nil || s.listen != want {
			t.Errorf("%q: %q, %v", text, s.listen, err)
		}
	}
	s, err := fill(t, "workers: 3\nyes: true\nwait: 90s\nmax-memory: &m 8GiB\ndata:\n  one: &p /data/one\n  two: *p\n")
	if err != nil || s.workers != 3 || !s.yes || s.wait != 90*time.Second || s.size != 8<<30 || s.data.String() != "one=/data/one,two=/data/one" {
		t.Errorf("%+v, %v", s, err)
	}
	s, err = fill(t, "workers: &n 3\nmax-memory: *n\n")
	if err != nil || s.size != 3 {
		t.Errorf("an alias: %+v, %v", s, err)
	}
	s, err = fill(t, "data: ['one=/data/a,b', two=/data/c]\n")
	if err != nil || s.data.String() != "one=/data/a,b,two=/data/c" {
		t.Errorf("a list: %+v, %v", s, err)
	}
}

func TestConfigFileRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"wurkers: 3":                   `"wurkers" is no option`,
		"config: other.yaml":           `"config" is no option`,
		"help: true":                   `"help" is no option`,
		"workers: [1, 2]":              "--workers takes one value, not 2",
		"workers: {a: 1}":              `--workers "a=1"`,
		"workers: many":                `--workers "many"`,
		"workers:":                     `--workers ""`,
		"yes: perhaps":                 `--yes "perhaps"`,
		"max-memory: 4gb":              "write it like 4GiB",
		"wait: 5":                      "is no duration; write it like 30s",
		"data: {a: {b: c}}":            "line 1: data: neither a value nor a list",
		"data: [[a]]":                  "neither a value nor a list",
		"data: [a=/x, a=/y]":           `"a" is there twice`,
		"listen: a\nlisten: b":         "already defined",
		"listen: a\n---\nlisten: b\n":  "more than one YAML document",
		"[listen]":                     "cannot unmarshal",
		"listen: {":                    "feedwater.yaml: yaml: ",
		"listen: a\nmerged: &m {a: b}": `"merged" is no option`,
	} {
		if _, err := fill(t, text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

func TestConfigFromTheEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(file, []byte("listen: file"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FEEDWATER_CONFIG", file)
	if s, err := fill(t, ""); err != nil || s.listen != "file" {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := fill(t, "listen: flag"); err != nil || s.listen != "flag" {
		t.Errorf("--config beside FEEDWATER_CONFIG: %+v, %v", s, err)
	}
	t.Setenv("FEEDWATER_CONFIG", "")
	if s, err := fill(t, ""); err != nil || s.listen != "standard" {
		t.Errorf("an empty one: %+v, %v", s, err)
	}
	t.Setenv("FEEDWATER_CONFIG", file+".none")
	if _, err := fill(t, ""); err == nil || !strings.Contains(err.Error(), "a.yaml.none") {
		t.Errorf("%v", err)
	}
	t.Setenv("FEEDWATER_CONFIG", file)
	t.Setenv("FEEDWATER_WORKERS", "many")
	t.Setenv("FEEDWATER_YES", "perhaps")
	if _, err := fill(t, ""); err == nil || !strings.Contains(err.Error(), "FEEDWATER_WORKERS: --workers \"many\"") || !strings.Contains(err.Error(), "FEEDWATER_YES") {
		t.Errorf("two that are wrong: %v", err)
	}
}

// A variable sets the flags of all commands that mean the same by it, and no other's. What bears a command's name goes first.
func TestVariablesMeanOneThing(t *testing.T) {
	for name, value := range map[string]string{
		"FEEDWATER_DATA": "photos=/data", "FEEDWATER_LISTEN": ":7070", "FEEDWATER_INTERVAL": "4", "FEEDWATER_TLS_CERT": "node.pem", "FEEDWATER_TLS_KEY": "node-key.pem",
		"FEEDWATER_TOKEN_FILE": "tokens", "FEEDWATER_TLS_CA": "ca.pem", "FEEDWATER_CONFIG": "node.yaml", "FEEDWATER_INDEX_INTERVAL": "2", "FEEDWATER_WORKERS": "3",
		"FEEDWATER_TOP_TOKEN_FILE": "token", "FEEDWATER_SERVE_WORKERS": "5", "FEEDWATER_SCALER_LISTEN": ":1",
	} {
		t.Setenv(name, value)
	}
	for _, c := range []struct {
		command    *cobra.Command
		flag, want string
	}{
		{newServe(), "data", "photos=/data"},
		{newServe(), "listen", ":7070"},
		{newServe(), "tls-cert", "node.pem"},
		{newServe(), "token-file", "tokens"},
		{newServe(), "workers", "5"},
		{newVerify(), "data", "[]"},
		{newVerify(), "tls-cert", ""},
		{newVerify(), "tls-key", ""},
		{newVerify(), "token-file", ""},
		{newVerify(), "tls-ca", "ca.pem"},
		{newTop(), "interval", "1s"},
		{newTop(), "tls-ca", "ca.pem"},
		{newTop(), "token-file", "token"},
		{newScaler(), "listen", ":1"},
		{newScaler(), "tls-key", ""},
		{newIndex(), "interval", "2"},
		{newIndex(), "workers", "3"},
	} {
		if err := fillFlags(c.command.Name(), c.command.Flags(), nil); err != nil {
			t.Errorf("%s: %v", c.command.Name(), err)
		}
		if got := c.command.Flags().Lookup(c.flag).Value.String(); got != c.want {
			t.Errorf("%s --%s is %q, want %q", c.command.Name(), c.flag, got, c.want)
		}
	}
	for _, c := range []*cobra.Command{newTop(), newVerify(), newScaler(), newIndex()} {
		if err := c.PreRunE(c, nil); err != nil {
			t.Errorf("%s: %v", c.Name(), err)
		}
	}
	if err := newServe().PreRunE(newServe(), nil); err == nil || !strings.Contains(err.Error(), "node.yaml") {
		t.Errorf("a node's own file: %v", err)
	}
}

// Commands agree on what a variable means, but where they say that they do not.
func TestFlagsOfOneNameMeanOneThing(t *testing.T) {
	own := map[string][]string{}
	uses := map[string]map[string]bool{}
	for _, c := range newRoot().Commands() {
		if c.Flags().Lookup("config") == nil {
			continue
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if _, its := f.Annotations[ownFlag]; its {
				own[f.Name] = append(own[f.Name], c.Name())
				return
			}
			if uses[f.Name] == nil {
				uses[f.Name] = map[string]bool{}
			}
			uses[f.Name][f.Value.Type()] = true
		})
	}
	for name, types := range uses {
		if len(types) > 1 {
			t.Errorf("--%s is one of %d types, by one variable", name, len(types))
		}
	}
	for _, name := range []string{"data", "interval", "listen", "tls-cert", "tls-key", "token-file", "config"} {
		if len(own[name]) == 0 {
			t.Errorf("--%s has one variable for all", name)
		}
	}
}
