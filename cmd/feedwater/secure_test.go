package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/pipeline/spelling"
	"github.com/feedwater-io/feedwater/server/audit"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// A node with everything on: TLS, certificates, tokens, rules and the audit log, by a config file.
func TestServeSecurely(t *testing.T) {
	dir, photos := t.TempDir(), pictures(t, 1)
	ca := servertest.NewAuthority(t, "ca")
	theirs, mine := ca.Issue("node", time.Hour), ca.Issue("trainer", time.Hour)
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tokens", "team-a 0123456789abcdef0123\nteam-b fedcba98765432100123\n")
	write("token-b", "fedcba98765432100123\n")
	write("feedwater.yaml", `
data: {photos: `+photos+`}
tls-cert: `+theirs.Cert+`
tls-key: `+theirs.Key+`
client-ca: `+ca.File+`
token-file: `+path("tokens")+`
audit: `+path("audit.json")+`
identities:
  team-a: {roots: [photos], max-wants: 100, max-memory: 64MiB, bytes-per-second: 100MB}
  trainer: {roots: ["*"]}
  team-b: {roots: [], watch: true}
`)
	n := start(t, "--config", path("feedwater.yaml"))
	plain := digest(t, client.Options{Plan: crops, Nodes: []string{start(t, "--data", "photos="+photos).addr}}, 5)
	for name, d := range map[string]node.DialOptions{
		"token":       {Files: &node.TLSFiles{CA: ca.File}, TokenFile: path("tokens")},
		"certificate": {Files: &node.TLSFiles{CA: ca.File, Cert: mine.Cert, Key: mine.Key}},
	} {
		if got := digest(t, client.Options{Plan: crops, Job: name, Nodes: []string{n.addr}, Dialing: d}, 5); got != plain {
			t.Errorf("%s: %s, want %s", name, got, plain)
		}
	}
	f, err := client.New(client.Options{Plan: crops, Nodes: []string{n.addr}, Dialing: node.DialOptions{Files: &node.TLSFiles{CA: ca.File}, TokenFile: path("token-b")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open(t.Context()); err == nil || !strings.Contains(err.Error(), `"team-b" may not read root "photos" here; it may read none`) {
		t.Error(err)
	}
	f.Close()
	for token, want := range map[string]string{"token-b": `"state":"ready"`, "tokens": `its rule needs watch`, "": "wants a client certificate or a token"} {
		args := []string{"top", n.addr, "--once", "--json", "--tls-ca", ca.File}
		if token != "" {
			args = append(args, "--token-file", path(token))
		}
		if _, out, errs := call(args...); !strings.Contains(out+errs, want) {
			t.Errorf("top with %q: %s%s, want %s", token, out, errs, want)
		}
	}
	n.stop()
	text, err := os.ReadFile(path("audit.json"))
	if err != nil {
		t.Fatal(err)
	}
	jobs := map[string]audit.Line{}
	for line := range strings.Lines(string(text)) {
		var l audit.Line
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		jobs[l.Job] = l
	}
	for name, identity := range map[string]string{"token": "team-a", "certificate": "trainer"} {
		if l := jobs[name]; l.Identity != identity || l.Samples != 16 || l.Root != "photos" || l.Event != "job" {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if info, err := os.Stat(path("audit.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the audit log: %v, %v", info.Mode(), err)
	}
}

func TestSecureOptionsRefuse(t *testing.T) {
	dir := anyFolder(t)
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"half a pair":         {[]string{"--tls-cert", "x"}, "--tls-cert and --tls-key go together"},
		"CA alone":            {[]string{"--client-ca", "x"}, "--client-ca is about TLS"},
		"both ways":           {[]string{"--tls-cert", "x", "--tls-key", "y", "--insecure"}, "contradict each other"},
		"token in the clear":  {[]string{"--token-file", "x", "--listen", ":0", "--insecure"}, "tokens go over TLS only"},
		"nothing encrypted":   {[]string{"--listen", ":0"}, "give --tls-cert and --tls-key"},
		"http to all":         {[]string{"--http", ":0"}, "--http-insecure"},
		"nobody to tell":      {[]string{"--identities", "{a: {roots: [photos]}}"}, "nobody has to say who he is"},
		"unknown root":        {[]string{"--token-file", "x", "--identities", "{a: {roots: [fotos]}}"}, `identity a: there is no root "fotos"; --data has photos`},
		"negative":            {[]string{"--token-file", "x", "--identities", "{a: {max-wants: -1}}"}, "identity a: max-wants: a limit of -1"},
		"no number":           {[]string{"--token-file", "x", "--identities", "{a: {weight: .nan}}"}, "a limit of NaN"},
		"a rate of none":      {[]string{"--token-file", "x", "--identities", "{a: {calls-per-second: .nan}}"}, "a limit of NaN"},
		"endless weight":      {[]string{"--token-file", "x", "--identities", "{a: {weight: .inf}}"}, "a limit of +Inf"},
		"endless rate":        {[]string{"--token-file", "x", "--identities", "{a: {wants-per-second: .inf}}"}, "a limit of +Inf"},
		"unknown member":      {[]string{"--identities", "{a: {root: [photos]}}"}, `"root" is no member of an identity; did you mean roots?`},
		"not yet":             {[]string{"--identities", "{a: {cores: 3}}"}, `"cores" is no member`},
		"no identities":       {[]string{"--identities", "a"}, "not identities"},
		"no such certificate": {[]string{"--tls-cert", dir + "/none", "--tls-key", dir + "/none"}, "no such file"},
		"no such tokens":      {[]string{"--token-file", dir + "/none"}, "no such file"},
		"no place for audit":  {[]string{"--audit", dir + "/none/audit"}, "--audit: open"},
		"connections":         {[]string{"--max-connections", "-1"}, "--max-connections -1"},
		"share":               {[]string{"--address-share", "-1"}, "--address-share -1"},
		"no share":            {[]string{"--address-share", "nan"}, "--address-share NaN"},
	} {
		code, _, errs := call(append([]string{"serve", "--data", "photos=" + dir}, c.args...)...)
		if code == exitOK || !strings.Contains(errs, c.says) {
			t.Errorf("%s: exit code %d, %s", name, code, errs)
		}
	}
}

func TestMeaning(t *testing.T) {
	names := []string{"listen", "data", "max-memory", "tls-cert"}
	for wrong, says := range map[string]string{
		"lisen": "; did you mean listen?", "max_memory": "; did you mean max-memory?", "dta": "; did you mean data?", "something-else": "; there are listen, data",
	} {
		if got := spelling.Suggest(wrong, names); !strings.HasPrefix(got, says) {
			t.Errorf("%s: %q", wrong, got)
		}
	}
}

// The file is opened for each line, so that it can be moved away while the node runs.
func TestAuditLogMayBeMoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	a, err := openAudit(path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.writeLine(audit.Line{Event: "one"})
	for written := false; !written; { // soon
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		written = strings.Contains(string(text), "\n")
	}
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	a.writeLine(audit.Line{Event: "two"})
	a.close()
	a.close()
	a.writeLine(audit.Line{Event: "too late"})
	for file, event := range map[string]string{path + ".1": "one", path: "two"} {
		text, err := os.ReadFile(file)
		if err != nil || strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), event) {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
	var out strings.Builder
	if a, err = openAudit("-", &out, nil); err != nil {
		t.Fatal(err)
	}
	a.writeLine(audit.Line{Event: "three"})
	a.close()
	if !strings.Contains(out.String(), "three") {
		t.Error(out.String())
	}
}

// A file of the audit log that does not answer keeps no call waiting. What does not fit into memory is missed, and counted.
func TestAuditLogOnStorageThatHangs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	said := newBook()
	a, err := openAudit(path, nil, (&logOptions{format: "text", level: "info"}).newLog(said))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil { // which cannot be opened before somebody reads it
		t.Fatal(err)
	}
	const sent = auditBacklog + 100
	for range sent {
		a.writeLine(audit.Line{Event: "job"})
	}
	if text := said.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "does not keep up") {
		t.Errorf("logged: %s", text)
	}
	got := make(chan int)
	go func() {
		lines := 0
		defer func() { got <- lines }()
		f, err := os.OpenFile(path, os.O_RDWR, 0) // stays open between two writers
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		for r := bufio.NewReader(f); lines < sent; lines++ {
			if text, err := r.ReadString('\n'); err != nil || strings.Contains(text, "last") {
				return
			}
		}
	}()
	for taken := false; !taken; { // until there is room
		a.mu.Lock()
		taken = len(a.lines) < auditBacklog
		a.mu.Unlock()
	}
	a.writeLine(audit.Line{Event: "last"})
	a.close()
	lines := <-got
	if text := said.String(); !strings.Contains(text, fmt.Sprintf("lines=%d", sent-lines)) {
		t.Errorf("%d lines of %d came; logged: %s", lines, sent, text)
	}
}
