package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/goleak"
)

// asProgram makes the test binary behave as the program: for tests that need a process of its own.
const asProgram = "FEEDWATER_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// program is the program as a process, killed after a minute.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, self, args...)
	c.Env = append(os.Environ(), asProgram+"=1")
	return c
}

// call runs the program in this process.
func call(args ...string) (code int, out, errs string) {
	var stdout, stderr bytes.Buffer
	code = runCommand(args, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestExitCodesAndMessages(t *testing.T) {
	dir := anyFolder(t)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{nil, exitOK, ""},
		{[]string{"version"}, exitOK, ""},
		{[]string{"serv"}, exitUsage, `unknown command "serv"; did you mean serve?`},
		{[]string{"frobnicate"}, exitUsage, `unknown command "frobnicate"; there are completion, doctor, index, `},
		{[]string{"version", "now"}, exitUsage, `feedwater version takes no arguments, only flags: what is "now"?`},
		{[]string{"serve", "photos"}, exitUsage, `feedwater serve takes no arguments`},
		{[]string{"serve"}, exitUsage, "nothing to serve: give --data NAME=FOLDER"},
		{[]string{"serve", "--nonsense"}, exitUsage, "unknown flag: --nonsense\n"},
		{[]string{"serve", "--worker", "2"}, exitUsage, "unknown flag: --worker; did you mean --workers?"},
		{[]string{"top", "-q"}, exitUsage, "unknown shorthand flag: 'q' in -q"},
		{[]string{"serve", "--workers", "some"}, exitUsage, `invalid argument "some" for "--workers"`},
		{[]string{"serve", "--data", dir}, exitUsage, "is not NAME=FOLDER"},
		{[]string{"serve", "--data", "a=" + dir + "/none"}, exitUsage, "no such file"},
		{[]string{"serve", "--data", "a=" + t.TempDir()}, exitUsage, "is empty: is the disk mounted that should be there?"},
		{[]string{"serve", "--data", "a=" + dir, "--log-level", "loud"}, exitUsage, `--log-level "loud" is none of`},
		{[]string{"serve", "--data", "a=" + dir, "--config", dir + "/none.yaml"}, exitUsage, "none.yaml: no such file"},
		{[]string{"serve", "--data", "a=" + dir, "--listen", "unix:" + dir + "/none/socket"}, exitError, "--listen unix:" + dir + "/none/socket: "},
	} {
		code, out, errs := call(c.args...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%q: exit code %d, %s", c.args, code, errs)
		}
		if code == exitOK && (out == "" || errs != "") {
			t.Errorf("%q: output %q, errors %q", c.args, out, errs)
		}
		if hint := "--help' for the options"; strings.Contains(errs, hint) != (code == exitUsage) {
			t.Errorf("%q: exit code %d: %s", c.args, code, errs)
		}
	}
}

func TestPortInUse(t *testing.T) {
	n := start(t, "--data", "a="+anyFolder(t))
	code, _, errs := call("serve", "--data", "a="+anyFolder(t), "--listen", n.addr)
	if code != exitError || !strings.Contains(errs, "address already in use") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestHelp(t *testing.T) {
	for _, c := range newRoot().Commands() {
		code, out, errs := call(c.Name(), "--help")
		if code != exitOK || errs != "" || c.Short == "" || !strings.Contains(out, "Usage:") || !strings.Contains(out, "feedwater "+c.Name()) {
			t.Errorf("%s: exit code %d, %s%s", c.Name(), code, out, errs)
		}
	}
	_, out, _ := call("serve", "--help")
	newServe().Flags().VisitAll(func(f *pflag.Flag) {
		if f.Usage == "" || strings.Contains(out, "--"+f.Name+" ") == f.Hidden {
			t.Errorf("help of serve and flag --%s:\n%s", f.Name, out)
		}
	})
}

func TestVersion(t *testing.T) {
	for _, asked := range []string{"version", "--version"} {
		_, out, _ := call(asked)
		for _, w := range []string{"feedwater " + version, "kernels", "numerics"} {
			if !strings.Contains(out, w) {
				t.Errorf("%s: %q is not in\n%s", asked, w, out)
			}
		}
	}
}

// Somebody who tries `feedwater agent` at a prompt is told what it is.
func TestAgentByHand(t *testing.T) {
	c := program(t, "agent")
	var errs bytes.Buffer
	c.Stderr = &errs
	err := c.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitUsage || !strings.Contains(errs.String(), "started by feedwater.Loader") {
		t.Errorf("%v: %s", err, &errs)
	}
}

// The error about a variable of an agent ends in a command that says what each of them takes; the page about configuration has them all.
func TestVariablesOfAnAgentAreExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\nA trainer's agent,")
	section, _, _ = strings.Cut(section, "\n## ")
	code, out, _ := call("agent", "--help")
	if code != exitOK {
		t.Errorf("exit code %d", code)
	}
	(&agentOptions{}).flagSet().VisitAll(func(f *pflag.Flag) {
		_, usage := pflag.UnquoteUsage(f)
		name := variableFor(agentCommand, f)
		if _, help, ok := strings.Cut(out, "  "+name+"  "); !ok || !strings.Contains(help, usage) {
			t.Errorf("%s is not in\n%s", name, out)
		}
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("%s is not in the page", name)
		}
	})
	for _, says := range []string{"FEEDWATER_AGENT_HTTP  address\n", "FEEDWATER_INDEX_LIMIT  size\n", "(default 4GiB)", "FEEDWATER_KEEP  size\n", "_INSECURE  true or false\n"} {
		if !strings.Contains(out, says) {
			t.Errorf("no %q in\n%s", says, out)
		}
	}
}
