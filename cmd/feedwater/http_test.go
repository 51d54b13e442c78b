package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// browser makes requests that trust a CA, with a client certificate if there is one.
func browser(t *testing.T, ca *servertest.Authority, own *servertest.Pair) *http.Client {
	t.Helper()
	text, err := os.ReadFile(ca.File)
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{RootCAs: x509.NewCertPool()}
	c.RootCAs.AppendCertsFromPEM(text)
	if own != nil {
		pair, err := tls.LoadX509KeyPair(own.Cert, own.Key)
		if err != nil {
			t.Fatal(err)
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil } // whoever is asked for
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
}

func dialUnix(path string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
}

// ask is the code and the answer of a request; prepare may be nil.
func ask(t *testing.T, c *http.Client, url string, prepare func(*http.Request)) (code int, body string, header http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if prepare != nil {
		prepare(r)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b), answer.Header
}

func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

// A node with TLS has its page and metrics behind the same TLS and the same identities as Watch, and probes that ask nobody who he is.
func TestHTTPOfASecureNode(t *testing.T) {
	dir := t.TempDir()
	ca, others := servertest.NewAuthority(t, "ca"), servertest.NewAuthority(t, "others")
	node := ca.Issue("node", time.Hour)
	watcher, trainer, stranger := ca.Issue("prometheus", time.Hour), ca.Issue("trainer", time.Hour), others.Issue("prometheus", time.Hour)
	tokens, config := filepath.Join(dir, "tokens"), filepath.Join(dir, "feedwater.yaml")
	const watching, training = "aaaa0000111122223333", "bbbb0000111122223333"
	for path, text := range map[string]string{
		tokens: "watcher " + watching + "\nteam " + training + "\n",
		config: `
data: {photos: ` + pictures(t, 1) + `}
tls-cert: ` + node.Cert + `
tls-key: ` + node.Key + `
client-ca: ` + ca.File + `
token-file: ` + tokens + `
identities:
  watcher: {roots: [], watch: true}
  prometheus: {roots: [], watch: true}
  team: {roots: [photos]}
  trainer: {roots: [photos]}
`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := start(t, "--config", config, "--http", "127.0.0.1:0", "--health", "127.0.0.1:0")
	at := "https://" + n.log.await(`msg=http addr=(\S+) tls=true`)
	plain := browser(t, ca, nil)
	for _, path := range []string{"/", "/page.js", "/watch.json", "/metrics"} {
		for name, c := range map[string]struct {
			client  *http.Client
			prepare func(*http.Request)
			code    int
			says    string
		}{
			"token":              {plain, bearer(watching), 200, ""},
			"password":           {plain, func(r *http.Request) { r.SetBasicAuth("anybody", watching) }, 200, ""},
			"certificate":        {browser(t, ca, &watcher), nil, 200, ""},
			"nobody":             {plain, nil, 401, "wants a client certificate or a token"},
			"unknown token":      {plain, bearer("cccc0000111122223333"), 401, "does not know that token"},
			"token of a team":    {plain, bearer(training), 403, "its rule needs watch"},
			"trainer":            {browser(t, ca, &trainer), nil, 403, "its rule needs watch"},
			"token counts first": {browser(t, ca, &watcher), bearer(training), 403, "its rule needs watch"},
		} {
			code, body, header := ask(t, c.client, at+path, c.prepare)
			if code != c.code || !strings.Contains(body, c.says) {
				t.Errorf("%s by %s: %d %s, want %d", path, name, code, body, c.code)
			}
			schemes := header.Values("WWW-Authenticate")
			if basic := slices.ContainsFunc(schemes, func(s string) bool { return strings.HasPrefix(s, "Basic ") }); basic != (c.code == 401) {
				t.Errorf("%s by %s: asks for %q", path, name, schemes)
			}
		}
	}
	if answer, err := browser(t, ca, &stranger).Get(at + "/metrics"); err == nil {
		answer.Body.Close()
		t.Error("a certificate of another CA is taken")
	}
	for _, base := range []string{at, "http://" + n.log.await(`msg=health addr=(\S+) tls=false`)} {
		for _, path := range []string{"/livez", "/readyz"} {
			if code, body, _ := ask(t, plain, base+path, nil); code != 200 || body != "ok\n" {
				t.Errorf("%s: %d %s", base+path, code, body)
			}
		}
	}
	health := "http://" + n.log.await(`msg=health addr=(\S+)`)
	for _, path := range []string{"/", "/metrics", "/watch.json", "/healthz", "/debug/pprof/"} {
		if code, _, _ := ask(t, plain, health+path, bearer(watching)); code != 404 {
			t.Errorf("--health answers %s: %d", path, code)
		}
	}
	// Another certificate and other tokens are taken without a restart.
	ca.Renew(node, "node", 2*time.Hour)
	if err := os.WriteFile(tokens, []byte("watcher dddd0000111122223333\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, _ := ask(t, plain, at+"/metrics", bearer("dddd0000111122223333")); code != 200 {
		t.Errorf("the new token: %d", code)
	}
	if code, _, _ := ask(t, plain, at+"/metrics", bearer(watching)); code != 401 {
		t.Errorf("the old token: %d", code)
	}
}

// A node that asks for tokens does so at a plaintext port of its own machine, too.
func TestHTTPOfALocalNodeWithTokens(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("me aaaa0000111122223333\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := start(t, "--data", "photos="+anyFolder(t), "--token-file", tokens, "--http", "127.0.0.1:0")
	at := "http://" + n.log.await(`msg=http addr=(\S+)`)
	if code, _, _ := ask(t, http.DefaultClient, at+"/metrics", nil); code != 401 {
		t.Errorf("without a token: %d", code)
	}
	code, body, _ := ask(t, http.DefaultClient, at+"/metrics", bearer("aaaa0000111122223333"))
	if code != 200 || !strings.Contains(body, `feedwater_node_refused_calls_total{code="Unauthenticated"} 1`) {
		t.Errorf("with it: %d %.2000s", code, body)
	}
}

// Who is ready depends on the start, on what is loaded before, and on draining alone; gRPC's health and /readyz say the same.
func TestReadiness(t *testing.T) {
	const feed = "feedwater.v1.Feed"
	r := newReadiness(feed)
	check := func(want string) {
		t.Helper()
		if got := r.pendingReason(); got != want {
			t.Errorf("not ready for %q, want %q", got, want)
		}
		for _, service := range []string{"", feed} {
			a, err := r.node.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
			if err != nil || (a.Status == healthpb.HealthCheckResponse_SERVING) != (want == "") {
				t.Errorf("%q: %v, %v", service, a, err)
			}
		}
	}
	check("")
	started := r.waitFor("the start")
	one, two := r.waitFor("photos"), r.waitFor("photos")
	check("waiting for photos, the start")
	started()
	one()
	one()
	check("waiting for photos")
	two()
	check("")
	r.setDraining()
	check("draining")
	r.waitFor("more")()
	check("draining")
}

// Both ports say that a node starts, is there, drains; a node that is alive is that until its end.
func TestProbes(t *testing.T) {
	n := start(t, "--data", "photos="+pictures(t, 1), "--health", "127.0.0.1:0", "--http", "127.0.0.1:0", "--drain-timeout", "10s")
	health, web := "http://"+n.log.await(`msg=health addr=(\S+)`), "http://"+n.log.await(`msg=http addr=(\S+)`)
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	stuck(t, n.addr)
	n.cancel()
	n.log.await("msg=draining")
	for _, at := range []string{health, web} {
		if code, body, _ := ask(t, c, at+"/readyz", nil); code != 503 || body != "draining\n" {
			t.Errorf("%s/readyz: %d %s", at, code, body)
		}
		if code, _, _ := ask(t, c, at+"/livez", nil); code != 200 {
			t.Errorf("%s/livez: %d", at, code)
		}
	}
}

// A node whose certificate has ended is not ready, and says why, once; streams that are open go on. It is ready again with the next one.
func TestCertificateThatEnds(t *testing.T) {
	ca, photos := servertest.NewAuthority(t, "ca"), pictures(t, 1)
	own := ca.Issue("node", time.Hour)
	n := start(t, "--data", "photos="+photos, "--tls-cert", own.Cert, "--tls-key", own.Key, "--health", "127.0.0.1:0")
	health := "http://" + n.log.await(`msg=health addr=(\S+)`)
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	check := func(want int, part string) {
		t.Helper()
		code, body := 0, ""
		for end := time.Now().Add(time.Minute); code != want || !strings.Contains(body, part); {
			if time.Now().After(end) {
				t.Fatalf("%d %s, want %d %s", code, body, want, part)
			}
			code, body, _ = ask(t, c, health+"/readyz", nil)
		}
	}
	trusting := client.Options{Plan: crops, Nodes: []string{n.addr}, Dialing: node.DialOptions{Files: &node.TLSFiles{CA: ca.File}}}
	f := openFleet(t, trusting)
	want := func() client.Result {
		result := make(chan client.Result, 1)
		f.Want(&client.Want{Name: rangeOf(0, 4), Request: batch.Request{Dst: make([]byte, 1<<20)}, Done: func(r client.Result) { result <- r }})
		return <-result
	}
	check(200, "ok")
	ca.Renew(own, "node", -time.Minute)
	check(503, "the certificate of CN=node ended at ")
	if said := n.log.await(`msg="not ready; streams that are open go on" err="(.*)"`); !strings.Contains(said, "renew it") {
		t.Errorf("the log says %q", said)
	}
	if r := want(); r.Err != nil {
		t.Errorf("a stream that is open: %v", r.Err)
	}
	check(503, "ended at")
	if lines := strings.Count(n.log.String(), "not ready"); lines != 1 {
		t.Errorf("it is said %d times", lines)
	}
	ca.Renew(own, "node", time.Hour)
	check(200, "ok")
	n.log.await(`msg="(ready again)"`)
}

// Profiles are for this machine alone, by a port or a socket of their own.
func TestProfiles(t *testing.T) {
	t.Chdir(t.TempDir()) // the path of a socket has to be short
	n := start(t, "--data", "photos="+anyFolder(t), "--pprof", "unix:pprof", "--http", "127.0.0.1:0")
	if n.log.await(`msg=pprof addr=(unix:pprof)`) == "" {
		t.Fatal(n.log)
	}
	c := &http.Client{Transport: &http.Transport{DialContext: dialUnix("pprof")}}
	if code, body, _ := ask(t, c, "http://node/debug/pprof/goroutine?debug=1", nil); code != 200 || !strings.Contains(body, "goroutine profile:") {
		t.Errorf("%d %.200s", code, body)
	}
	c.CloseIdleConnections()
	if code, _ := n.get("/debug/pprof/"); code != 404 {
		t.Errorf("--http has profiles: %d", code)
	}
	code, _, errs := call("serve", "--data", "a="+anyFolder(t), "--pprof", ":6060")
	if code != exitUsage || !strings.Contains(errs, "for this machine alone") {
		t.Errorf("for all: %d %s", code, errs)
	}
}

// A port that cannot be opened is told with its flag.
func TestWebPortInUse(t *testing.T) {
	stop, err := serveWeb(t.Context(), webPort{flag: "health", addr: "127.0.0.1:1x"}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.HasPrefix(err.Error(), "--health 127.0.0.1:1x: ") {
		t.Errorf("%v", err)
		stop()
	}
}

// Whoever reaches a port can have a handshake fail as often as he likes.
func TestFloodOfFailuresIsNoFloodOfLines(t *testing.T) {
	var lines bytes.Buffer
	h := newHTTP(http.NotFoundHandler(), slog.New(slog.NewTextHandler(&lines, nil)))
	for range 1000 {
		h.ErrorLog.Printf("http: TLS handshake error from %s: no TLS", "127.0.0.1:1")
	}
	n := strings.Count(lines.String(), "handshake")
	if n < 20 || n > 200 {
		t.Errorf("%d lines of 1000", n)
	}
	lines.Reset()
	newHTTP(http.NotFoundHandler(), slog.New(slog.NewTextHandler(&lines, nil))).ErrorLog.Print("http: TLS handshake error from 127.0.0.1:1: EOF")
	if lines.Len() > 0 {
		t.Errorf("a probe of the port is told of: %s", &lines)
	}
}
