package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/proto/externalscaler"
	"github.com/feedwater-io/feedwater/scaler"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// startScaler runs `feedwater scaler` until the test ends.
func startScaler(t *testing.T, args ...string) (addr string, log *book) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	log = newBook()
	root := newRoot()
	root.SetArgs(append([]string{"scaler", "--listen", "127.0.0.1:0"}, args...))
	root.SetErr(log)
	go func() {
		defer close(ended)
		_ = root.ExecuteContext(ctx)
		log.end()
	}()
	t.Cleanup(func() { stop(); <-ended })
	if addr = log.await(`msg=listening addr=(\S+)`); addr == "" {
		t.Fatal(log)
	}
	return addr, log
}

// metric asks a scaler for its number until it is known, or only is not known for the reason that is waited for.
func metric(t *testing.T, addr string, d node.DialOptions, reason string) float64 {
	t.Helper()
	options, err := d.GRPC(addr)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(addr, options...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for {
		r, err := externalscaler.NewExternalScalerClient(conn).GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{MetricName: scaler.Metric})
		switch {
		case err == nil && reason == "":
			return r.MetricValues[0].MetricValueFloat
		case err == nil:
			t.Fatalf("%g nodes are wanted, which cannot be known", r.MetricValues[0].MetricValueFloat)
		case reason != "" && strings.Contains(err.Error(), reason):
			return 0
		case !strings.Contains(err.Error(), "not known"):
			t.Fatal(err)
		}
	}
}

// A scaler watches nodes that ask for TLS and a token, and speaks TLS itself; one that may not watch them says why.
func TestScalerWatchesSecuredNodes(t *testing.T) {
	dir := t.TempDir()
	ca := servertest.NewAuthority(t, "ca")
	pair := ca.Issue("node", time.Hour)
	tokens, token := filepath.Join(dir, "tokens"), filepath.Join(dir, "token")
	for file, text := range map[string]string{tokens: "scaler 0123456789abcdef0123\n", token: "0123456789abcdef0123\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := start(t, "--data", "a="+anyFolder(t), "--tls-cert", pair.Cert, "--tls-key", pair.Key, "--token-file", tokens)

	addr, _ := startScaler(t, "--nodes", n.addr, "--tls-ca", ca.File, "--token-file", token, "--listen-cert", pair.Cert, "--listen-key", pair.Key)
	if got := metric(t, addr, node.DialOptions{Files: &node.TLSFiles{CA: ca.File}}, ""); got != 1 {
		t.Errorf("%g nodes, want the one that there is", got)
	}
	for want, args := range map[string][]string{
		"server preface":    {},
		"wants a token":     {"--tls-ca", ca.File},
		"unknown authority": {"--tls-ca", servertest.NewAuthority(t, "another").File, "--token-file", token},
		"no such file":      {"--tls-ca", filepath.Join(dir, "none"), "--token-file", token},
	} {
		addr, log := startScaler(t, append([]string{"--nodes", n.addr}, args...)...)
		metric(t, addr, node.DialOptions{}, want)
		if log.await(`msg="a node cannot be watched" (node=\S+)`) == "" {
			t.Errorf("%s: the log does not say so: %s", want, log)
		}
	}
}

// A hangup has a scaler look at its certificate at once, which it would else do with the next connection.
func TestScalerLooksAgainAtAHangup(t *testing.T) {
	ca := servertest.NewAuthority(t, "ca")
	pair, next := ca.Issue("scaler", time.Hour), ca.Issue("scaler", 2*time.Hour)
	_, log := startScaler(t, "--nodes", "127.0.0.1:1", "--listen-cert", pair.Cert, "--listen-key", pair.Key)
	for from, to := range map[string]string{next.Cert: pair.Cert, next.Key: pair.Key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if log.await(`msg="read (again)`) == "" {
		t.Error(log)
	}
}

// A scaler with a certificate shows its metrics by it, and probes without.
func TestScalerHTTP(t *testing.T) {
	ca := servertest.NewAuthority(t, "ca")
	own := ca.Issue("scaler", time.Hour)
	addr, log := startScaler(t, "--nodes", "file:"+t.TempDir(), "--listen-cert", own.Cert, "--listen-key", own.Key,
		"--http", "127.0.0.1:0", "--health", "127.0.0.1:0")
	at := "https://" + log.await(`msg=http addr=(\S+) tls=true`)
	metric(t, addr, node.DialOptions{Files: &node.TLSFiles{CA: ca.File}}, "") // known from now on
	for path, says := range map[string]string{"/wanted": `{"wanted":0}`, "/metrics": "\nfeedwater_scaler_nodes_listed 0\n", "/livez": "ok\n", "/readyz": "ok\n"} {
		if code, body, _ := ask(t, browser(t, ca, nil), at+path, nil); code != 200 || !strings.Contains(body, says) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, _, _ := ask(t, browser(t, ca, nil), "http://"+log.await(`msg=health addr=(\S+) tls=false`)+"/readyz", nil); code != 200 {
		t.Errorf("--health: %d", code)
	}
	code, _, errs := call("scaler", "--nodes", "localhost:1", "--http", ":7073", "--log-format", "xml")
	if code != exitUsage || !strings.Contains(errs, "--http :7073 is reachable from other machines") || !strings.Contains(errs, "neither text nor json") {
		t.Errorf("%d %s", code, errs)
	}
}
