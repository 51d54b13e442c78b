package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/client/comparison"
	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// replace puts another picture in a file's place, of the same number of bytes and dimensions.
func replace(t *testing.T, file string, number, height, width int) {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	for quality := 90; quality > 0; quality -= 10 {
		text := jpegtest.Encode(jpegtest.Photograph(uint64(1000+number), number%2, height, width), jpegtest.Options{Quality: quality})
		if spare := int(info.Size()) - len(text); spare >= 0 {
			if err := os.WriteFile(file, append(text, make([]byte, spare)...), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("no picture is small enough")
}

func verify(args ...string) (code int, out, errs string) {
	return call(append([]string{"verify", "--batch-size", "4"}, args...)...)
}

func TestVerifyEqual(t *testing.T) {
	a, b := start(t, "--data", "photos="+pictures(t, 1)), start(t, "--data", "photos="+pictures(t, 1))
	code, out, errs := verify("--nodes", a.addr+", "+b.addr, "--batches", "6")
	if code != exitOK || !strings.Contains(out, "6 batches of 24 samples compared: all equal") || !strings.Contains(out, a.addr) {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	plan := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(plan, []byte(whole), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs = verify("--nodes", a.addr+","+b.addr, "--batches", "5", "--plan", plan, "--json")
	var told struct {
		Equal       bool
		Comparisons []comparison.Result
	}
	if err := json.Unmarshal([]byte(out), &told); err != nil || code != exitOK || !told.Equal || told.Comparisons[0].Batches != 5 || len(told.Comparisons[0].Nodes) != 2 {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// Roots share the batches, but none is left out.
func TestVerifyLeavesNoRootOut(t *testing.T) {
	data := []string{"--data", "one=" + pictures(t, 1), "--data", "three=" + pictures(t, 3), "--data", "two=" + pictures(t, 2)}
	a, b := start(t, data...), start(t, data...)
	code, out, errs := verify("--nodes", a.addr+","+b.addr, "--batches", "1")
	if code != exitOK || strings.Count(out, ": 1 batches of 4 samples compared: all equal") != 3 {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// One picture of one node is another, of the same size: the list of files does not tell, the pixels do.
func TestVerifyNamesTheFirstDifference(t *testing.T) {
	other := pictures(t, 1)
	replace(t, filepath.Join(other, "class1", "05.jpg"), 5, 65, 65)
	a, b := start(t, "--data", "photos="+pictures(t, 1)), start(t, "--data", "photos="+other)
	code, out, errs := verify("--nodes", a.addr+","+b.addr, "--batches", "8", "--json")
	var told struct{ Comparisons []comparison.Result }
	if err := json.Unmarshal([]byte(out), &told); err != nil || code != exitError || !strings.Contains(errs, "the nodes differ") {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	r := told.Comparisons[0]
	d := r.First
	if d == nil || d.Node != b.addr || d.Key != "class1/05.jpg" || d.Field != "image" || d.Bytes == 0 || d.Of != 224*224*3 || d.Ours == d.Theirs || r.Differing != 2 || d.Batch >= 4 {
		t.Errorf("%+v, %+v", r, d)
	}
	if _, out, _ = verify("--nodes", a.addr+","+b.addr, "--batches", "8"); !strings.Contains(out, "class1/05.jpg: field image: ") {
		t.Errorf("%s", out)
	}
}

func TestVerifyOtherData(t *testing.T) {
	other := pictures(t, 1)
	if err := os.Truncate(filepath.Join(other, "class1", "05.jpg"), 300); err != nil {
		t.Fatal(err)
	}
	a, b := start(t, "--data", "photos="+pictures(t, 1)), start(t, "--data", "photos="+other)
	code, out, errs := verify("--nodes", a.addr+","+b.addr, "--batches", "4")
	if code != exitError || !strings.Contains(out, b.addr+" has other data: ") || !strings.Contains(out, "class1/05.jpg has 300 bytes there") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// A file that is broken on both is no difference, whatever the plan says about it; one that is broken on one node is.
func TestVerifyBrokenFiles(t *testing.T) {
	one, two := pictures(t, 1), pictures(t, 1)
	raises := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(raises, []byte(large), 0o644); err != nil {
		t.Fatal(err)
	}
	spoil := func(folder string) {
		file := filepath.Join(folder, "class0", "04.jpg")
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, make([]byte, info.Size()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	spoil(one)
	for _, c := range []struct {
		code int
		says string
	}{{exitError, "class0/04.jpg: decodes there, does not on the first node (decode: "}, {exitOK, "all equal"}} {
		a, b := start(t, "--data", "photos="+one), start(t, "--data", "photos="+two)
		code, out, errs := verify("--nodes", a.addr+","+b.addr, "--batches", "4", "--plan", raises)
		if code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("exit code %d: %s%s", code, out, errs)
		}
		spoil(two)
	}
}

func TestVerifyCannotCompare(t *testing.T) {
	a, b := start(t, "--data", "photos="+pictures(t, 1)), start(t, "--data", "photos="+pictures(t, 1))
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--nodes", a.addr}, "name two or more"},
		{[]string{"--nodes", "dns:cpu"}, "dns:name:port"},
		{[]string{"--nodes", a.addr + ",127.0.0.1:1", "--timeout", "1s"}, "127.0.0.1:1"},
		{[]string{"--nodes", a.addr + ",cpu-1:7070"}, "would not be encrypted"},
		{[]string{"--nodes", a.addr + "," + a.addr + "0", "--batches", "0"}, "--batches 0"},
		{[]string{"--nodes", a.addr + "," + b.addr, "--data", "none"}, `no root \"none\"`},
	} {
		code, out, errs := verify(c.args...)
		if code != exitUsage || !strings.Contains(errs, c.says) && !strings.Contains(errs, strings.ReplaceAll(c.says, `\"`, `"`)) {
			t.Errorf("%q: exit code %d: %s%s", c.args, code, out, errs)
		}
	}
}

// A node that cannot be reached is told of once, at once, and in the words of flags.
func TestVerifyOfNodesThatCannotBeReached(t *testing.T) {
	data := "photos=" + pictures(t, 1)
	ca, foreign := servertest.NewAuthority(t, "ca"), servertest.NewAuthority(t, "foreign")
	pair := ca.Issue("node", time.Hour)
	plain, other := start(t, "--data", data), start(t, "--data", data)
	secure := start(t, "--data", data, "--tls-cert", pair.Cert, "--tls-key", pair.Key)
	asking := start(t, "--data", data, "--tls-cert", pair.Cert, "--tls-key", pair.Key, "--client-ca", ca.File)
	for name, c := range map[string]struct {
		node string
		args []string
		says string
	}{
		"nobody":             {"127.0.0.1:1", nil, "127.0.0.1:1 does not answer: connection refused"},
		"TLS":                {secure.addr, nil, "give --tls-ca"},
		"no TLS":             {other.addr, []string{"--tls-ca", ca.File}, "leave out --tls and --tls-ca (to another machine that needs --insecure)"},
		"another CA":         {secure.addr, []string{"--tls-ca", foreign.File}, "give --tls-ca FILE with the CA that signed it"},
		"another name":       {secure.addr, []string{"--tls-ca", ca.File, "--tls-server-name", "cpu-1"}, "or give --tls-server-name NAME with one"},
		"client certificate": {asking.addr, []string{"--tls-ca", ca.File}, "give --tls-cert "},
		"another machine":    {"cpu-1:7070", nil, "give --tls-ca; --insecure, or FEEDWATER_INSECURE=1, says that the network is yours"},
	} {
		for _, data := range [][]string{nil, {"--data", "photos"}} {
			code, out, errs := verify(slices.Concat([]string{"--nodes", plain.addr + "," + c.node}, c.args, data)...)
			if code != exitUsage || !strings.Contains(errs, c.says) || strings.Contains(errs, "tls=") || linesWith(errs, c.node) != 1 {
				t.Errorf("%s: exit code %d: %s%s", name, code, out, errs)
			}
		}
	}
}

func linesWith(text, part string) (n int) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// A trouble that lasts is told of once, however long it is waited for; another one is told of too.
func TestVerifyLogsEachTroubleOnce(t *testing.T) {
	var b strings.Builder
	log := newTerseLog(&b)
	for waited := range 4 {
		log.Warn("waiting for nodes", "waited", time.Duration(waited)*time.Second, "timeout", time.Minute, "nodes", "a: down: if it serves TLS, pass tls=")
		log.Info("node joined", "node", "b")
	}
	log.Warn("node down", "node", "a", "err", errors.New("connection refused"))
	want := "level=WARN msg=\"waiting for nodes\" nodes=\"a: down: if it serves TLS, give --tls-ca\"\n" +
		"level=WARN msg=\"node down\" node=a err=\"connection refused\"\n"
	if b.String() != want {
		t.Errorf("%s, want %s", b.String(), want)
	}
}

// A signal is what it says of itself, not the call that it ended.
func TestVerifyInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := newVerify()
	c.SetArgs([]string{"--nodes", "127.0.0.1:1,127.0.0.1:2"})
	c.SetOut(io.Discard)
	c.SetErr(io.Discard)
	err := c.ExecuteContext(ctx)
	if !errors.As(err, new(notComparedError)) || err.Error() != "not compared: interrupted before all batches were there" {
		t.Error(err)
	}
}
