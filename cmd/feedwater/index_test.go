package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/agent"
	"github.com/feedwater-io/feedwater/pipeline/imageindex"
)

// indexFiles are the files of a folder for indexes.
func indexFiles(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.index"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestIndex(t *testing.T) {
	dir, cache := pictures(t, 2), t.TempDir()
	code, out, errs := call("index", dir, "--cache-dir", cache)
	if code != exitOK || !strings.Contains(out, "16 indexed, 0 had an index, 0 have none") || errs != "" {
		t.Fatalf("code %d: %s%s", code, out, errs)
	}
	if n := len(indexFiles(t, filepath.Join(cache, "index"))); n != 1 || !strings.Contains(out, filepath.Join(cache, "index")) {
		t.Errorf("%d files: %s", n, out)
	}
	if _, out, _ = call("index", dir, "--cache-dir", cache); !strings.Contains(out, "0 indexed, 16 had an index") {
		t.Errorf("again: %s", out)
	}
	elsewhere := filepath.Join(t.TempDir(), "x")
	t.Setenv("FEEDWATER_INDEX", elsewhere)
	if code, out, errs := call("index", dir, "--cache-dir", cache, "--interval", "1"); code != exitOK || len(indexFiles(t, elsewhere)) != 1 {
		t.Errorf("elsewhere: code %d: %s%s", code, out, errs)
	}
}

// Folders of pictures without classes, as masks and unlabelled data lie in, are indexed too.
func TestIndexOfAFlatFolder(t *testing.T) {
	code, out, errs := call("index", filepath.Join(pictures(t, 2), "class0"), "--cache-dir", t.TempDir())
	if code != exitOK || !strings.Contains(out, "8 indexed, 0 had an index, 0 have none") {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
}

func TestIndexSaysWhatIsWrong(t *testing.T) {
	dir := pictures(t, 1)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"index"}, exitUsage, "takes one folder"},
		{[]string{"index", dir, "--interval", "0"}, exitUsage, "--interval 0"},
		{[]string{"index", dir, "--index", "off"}, exitUsage, "nothing to do"},
		{[]string{"index", dir + "-not"}, exitError, "no such file"},
		{[]string{"index", dir, "--index", filepath.Join(file, "x")}, exitError, "not a directory"},
		{[]string{"index", dir, "--index", t.TempDir(), "--index-limit", "10"}, exitError, "limit"},
	} {
		if code, _, errs := call(append([]string{"--cache-dir", t.TempDir()}, test.args...)...); code != test.code || !strings.Contains(errs, test.says) {
			t.Errorf("%v: code %d: %s", test.args, code, errs)
		}
	}
}

// A node makes the same batches without an index, while it makes one, and with one.
func TestNodesIndexOnTheirWay(t *testing.T) {
	dir, index := pictures(t, 2), t.TempDir()
	var digests []string
	for _, where := range []string{indexOff, index, index} {
		n := start(t, "--data", "photos="+dir, "--index", where)
		for range 2 {
			digests = append(digests, digest(t, client.Options{Plan: crops, Nodes: []string{n.addr}}, 5))
		}
		n.stop()
	}
	for _, d := range digests[1:] {
		if d != digests[0] {
			t.Fatalf("digests %v", digests)
		}
	}
	if n := len(indexFiles(t, index)); n != 1 {
		t.Errorf("%d files", n)
	}
}

func TestIndexPlace(t *testing.T) {
	t.Setenv("FEEDWATER_INDEX", "off")
	if p, err := agentOptionsFromEnvironment(); err != nil || p.openIndex("", slog.Default(), nil, nil) != nil {
		t.Error("off is not off", err)
	}
	t.Setenv("FEEDWATER_INDEX", "/there")
	t.Setenv("FEEDWATER_INDEX_LIMIT", "5MB")
	p, err := agentOptionsFromEnvironment()
	var log bytes.Buffer
	var told []string
	x := p.openIndex("/cache", slog.New(slog.NewTextHandler(&log, nil)), nil, func(what string) { told = append(told, what) })
	if err != nil || x.Dir != "/there" || x.MaxBytes != 5e6 {
		t.Errorf("%+v, %v", x, err)
	}
	x.Trouble(imageindex.ErrFull)
	x.Trouble(imageindex.ErrFull)
	if strings.Count(log.String(), "FEEDWATER_INDEX_LIMIT") != 1 {
		t.Errorf("logged %s", log.String())
	}
	if len(told) != 1 || !strings.HasSuffix(told[0], "FEEDWATER_INDEX_LIMIT, raises that: "+imageindex.ErrFull.Error()) {
		t.Errorf("told %q", told)
	}
	t.Setenv("FEEDWATER_INDEX_LIMIT", "many")
	if _, err := agentOptionsFromEnvironment(); err == nil || !strings.Contains(err.Error(), "FEEDWATER_INDEX_LIMIT") {
		t.Errorf("%v", err)
	}
	if x := (&indexPlace{}).openIndex("/cache", slog.Default(), nil, nil); x.Dir != "/cache/index" {
		t.Errorf("%+v", x)
	}
}

// Copies of an index that is off are refused where the command line says both, and told of where one of them was said elsewhere.
func TestCopiesWithoutAnIndex(t *testing.T) {
	data := "photos=" + anyFolder(t)
	if code, _, errs := call("serve", "--data", data, "--index", "off", "--index-copies", "5MB"); code != exitUsage || !strings.Contains(errs, "--index off and --index-copies contradict each other") {
		t.Errorf("both flags: code %d: %s", code, errs)
	}
	const says = "--index-copies, or FEEDWATER_INDEX_COPIES, does nothing"
	for _, c := range []struct {
		environment map[string]string
		args        []string
		warned      bool
	}{
		{map[string]string{"FEEDWATER_INDEX": "off"}, []string{"--index-copies", "5MB"}, true},
		{map[string]string{"FEEDWATER_INDEX_COPIES": "5MB"}, []string{"--index", "off"}, true},
		{map[string]string{"FEEDWATER_INDEX_COPIES": "5MB", "FEEDWATER_INDEX": "off"}, nil, true},
		{map[string]string{"FEEDWATER_INDEX_COPIES": "0"}, []string{"--index", "off"}, false},
		{map[string]string{"FEEDWATER_INDEX_COPIES": "5MB"}, []string{"--index", t.TempDir()}, false},
	} {
		for name, value := range c.environment {
			t.Setenv(name, value)
		}
		n := start(t, append([]string{"--data", data}, c.args...)...)
		n.stop()
		if got := strings.Count(n.log.String(), says); got != map[bool]int{true: 1}[c.warned] {
			t.Errorf("%v %q: %s", c.environment, c.args, n.log)
		}
		for name := range c.environment {
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("FEEDWATER_INDEX", "off")
	t.Setenv("FEEDWATER_INDEX_COPIES", "5MB")
	o, err := agentOptionsFromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	if got := o.warnings(""); len(got) != 1 || !strings.Contains(got[0], says) {
		t.Errorf("an agent: %q", got)
	}
}

// What is said for pictures that are decoded here is told once where nodes decode all, and not where some are decoded here.
func TestVariablesOfNodesAreTold(t *testing.T) {
	dir := pictures(t, 1)
	n := start(t, "--data", "photos="+dir)
	for name, value := range map[string]string{"FEEDWATER_AGENT_KEEP": "5MB", "FEEDWATER_INDEX": "/there", "FEEDWATER_INDEX_COPIES": "0", "FEEDWATER_INDEX_LIMIT": "5MB"} {
		t.Setenv(name, value)
	}
	o, err := agentOptionsFromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	far := agent.Plan{Text: []byte(crops), Nodes: []string{n.addr}}
	for _, first := range []agent.Plan{far, {Text: []byte(at(crops, dir)), Workers: 1}} {
		l := pipelines(t)
		l.decoding = o.decodingVariables()
		var log bytes.Buffer
		for _, plan := range []agent.Plan{first, far} {
			plan.Log = slog.New(slog.NewTextHandler(&log, nil))
			if _, err := l.fleetOptions(t.Context(), plan); err != nil {
				t.Fatal(err)
			}
		}
		says := "FEEDWATER_INDEX, FEEDWATER_INDEX_LIMIT, FEEDWATER_AGENT_KEEP: nothing here uses this"
		if got := strings.Count(log.String(), says); got != len(first.Nodes) || got == 1 && !strings.Contains(log.String(), "as FEEDWATER_SERVE_INDEX if") {
			t.Errorf("nodes %q: %s", first.Nodes, &log)
		}
	}
	l := pipelines(t)
	far.Log = nil // nobody is told of what nobody said
	if _, err := l.fleetOptions(t.Context(), far); err != nil {
		t.Error(err)
	}
}

func TestKeepOfAnAgent(t *testing.T) {
	t.Setenv("FEEDWATER_KEEP", "5MB")
	if o, err := agentOptionsFromEnvironment(); err != nil || o.keep != 5e6 {
		t.Errorf("%+v, %v", o, err)
	}
	t.Setenv("FEEDWATER_KEEP", "100000TiB")
	if _, err := agentOptionsFromEnvironment(); err == nil || !strings.Contains(err.Error(), "FEEDWATER_KEEP") {
		t.Errorf("%v", err)
	}
}

func TestProgress(t *testing.T) {
	var w bytes.Buffer
	p := newProgress(&w)
	p.terminal = true
	for i := range 5 {
		p.shown = p.shown.Add(-1e9)
		p.showStep(i, 10)
	}
	p.clearBar()
	if out := w.String(); !strings.Contains(out, "[############..................]  40 %  4 of 10 pictures") || !strings.HasSuffix(out, "\r\x1b[K") {
		t.Errorf("%q", out)
	}
}

// Where what was made cannot be written the report says so, and the error how far it came and why.
func TestIndexThatCannotBeWritten(t *testing.T) {
	dir, cache := pictures(t, 1), t.TempDir()
	written := filepath.Join(cache, "index")
	if err := os.WriteFile(written, nil, 0o600); err != nil { // where a folder should be
		t.Fatal(err)
	}
	code, out, errs := call("index", dir, "--cache-dir", t.TempDir(), "--index", filepath.Join(written, "below"))
	if code != exitError || !strings.HasPrefix(out, "16 pictures in ") || !strings.Contains(out, ": 0 indexed") || !strings.Contains(out, "index of 0, 0.00 %") {
		t.Errorf("code %d: %s", code, out)
	}
	if !strings.Contains(errs, "stopped after 16 of 16 pictures, of which 16 indexes could not be written: ") || !strings.Contains(errs, "not a directory") {
		t.Errorf("%s", errs)
	}
}
