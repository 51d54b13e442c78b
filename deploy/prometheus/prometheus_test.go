//go:build prometheus

// Package prometheus_test has a real Prometheus scrape a real node, and evaluates what is shipped for it: make
// test-prometheus.
package prometheus_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/servertest"
)

const token = "aaaa0000111122223333"

// tool is a program of the folder that make installs tools to.
func tool(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../.tools/bin", name))
	if err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), path, args...)
}

func TestRules(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", "feedwater.rules.yaml"}, {"test", "rules", "feedwater.rules.test.yaml"}} {
		if out, err := tool(t, "promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// begin starts a program, which is stopped at the end of the test, and returns what the groups of the expression match
// in its log.
func begin(t *testing.T, c *exec.Cmd, expression string) []string {
	t.Helper()
	r, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		<-read
		_ = c.Wait()
	})
	var log bytes.Buffer
	wanted := regexp.MustCompile(expression)
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadString('\n')
		log.WriteString(line)
		if m := wanted.FindStringSubmatch(log.String()); m != nil {
			go func() {
				defer close(read)
				_, _ = io.Copy(io.Discard, lines)
			}()
			return m[1:]
		}
		if err != nil {
			close(read)
			t.Fatalf("%s says no %s:\n%s", c.Path, expression, log.String())
		}
	}
}

// target is `feedwater serve` with TLS and tokens.
type target struct {
	t                      *testing.T
	addr, http, ca, tokens string
	opened                 *pb.OpenResponse
	feed                   pb.FeedClient
}

func startNode(t *testing.T) *target {
	t.Helper()
	dir := t.TempDir()
	ca := servertest.NewAuthority(t, "ca")
	own := ca.Issue("node", time.Hour)
	n := &target{t: t, ca: ca.File, tokens: filepath.Join(dir, "tokens")}
	if err := os.WriteFile(n.tokens, []byte("prometheus "+token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	if err := jpegtest.Folder(data, 2, 4, 1); err != nil {
		t.Fatal(err)
	}
	addrs := begin(t, exec.CommandContext(t.Context(), os.Getenv("FEEDWATER_BINARY"), "serve", "--data", "photos="+data, "--cache-dir", dir,
		"--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--tls-cert", own.Cert, "--tls-key", own.Key, "--token-file", n.tokens),
		`(?s)msg=http addr=(\S+) .*msg=listening addr=(\S+)`)
	n.http, n.addr = addrs[0], addrs[1]
	options, err := node.DialOptions{Files: &node.TLSFiles{CA: n.ca}, TokenFile: n.tokens}.GRPC(n.addr)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///"+n.addr, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	n.feed = pb.NewFeedClient(conn)
	plan := `{"source": {"root": "photos"}, "transforms": [{"op": "CenterCrop", "size": [32, 32]}]}`
	if n.opened, err = n.feed.Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: plan}); err != nil {
		t.Fatal(err)
	}
	return n
}

// train is a training of one rank, whose GPU stands still for a quarter of its time, and that has had a batch and a
// failure.
func (n *target) train(name string) {
	n.t.Helper()
	stream, err := n.feed.Fetch(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	pulse := &pb.Pulse{World: 1, Samples: 8, Host: "gpu"}
	for i := range uint64(20) {
		pulse.Steps = append(pulse.Steps, &pb.Step{Number: i, Step: 0.2, Wait: 0.1, Idle: proto.Float64(0.05)})
	}
	want := func(id uint64, count uint32) *pb.FetchRequest {
		of := &pb.Name{Samples: &pb.Name_Range{Range: &pb.Range{Count: count}}}
		return &pb.FetchRequest{Request: &pb.FetchRequest_Want{Want: &pb.Want{Id: id, Name: of}}}
	}
	start := &pb.Start{Plan: n.opened.Plan, Numerics: n.opened.Numerics, Revisions: n.opened.Revisions, Job: name}
	for _, r := range []*pb.FetchRequest{
		{Request: &pb.FetchRequest_Start{Start: start}}, {Request: &pb.FetchRequest_Pulse{Pulse: pulse}}, want(1, 4), want(2, 0),
	} {
		if err := stream.Send(r); err != nil {
			n.t.Fatal(err)
		}
	}
	for answered := map[uint64]bool{}; !answered[1] || !answered[2]; {
		m, err := stream.Recv()
		if err != nil {
			n.t.Fatal(err)
		}
		answered[m.Id] = true
	}
}

// server is a Prometheus that scrapes nodes.
type server struct {
	t    *testing.T
	addr string
}

func startServer(t *testing.T, n *target) *server {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs("feedwater.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, "token")
	config := fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: nodes
    scheme: https
    tls_config: {ca_file: %q}
    authorization: {credentials_file: %q}
    static_configs: [{targets: [%q]}]
`, rules, n.ca, secret, n.http)
	for path, text := range map[string]string{filepath.Join(dir, "config.yaml"): config, secret: token + "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := tool(t, "prometheus", "--config.file="+filepath.Join(dir, "config.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0")
	return &server{t, begin(t, c, `(?s)msg="Listening on"[^\n]* address=(\S+).*Server is ready`)[0]}
}

// ask is the member data of an answer of Prometheus's API.
func (s *server) ask(path string, query url.Values, data any) {
	s.t.Helper()
	answer, err := http.Get("http://" + s.addr + "/api/v1/" + path + "?" + query.Encode())
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var whole struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(answer.Body).Decode(&whole); err != nil || whole.Status != "success" {
		s.t.Fatalf("%s %v: %v %s", path, query, err, whole.Error)
	}
	if err := json.Unmarshal(whole.Data, data); err != nil {
		s.t.Fatal(err)
	}
}

// series are the labels of an expression's result.
func (s *server) series(expr string) (all []map[string]string) {
	s.t.Helper()
	var data struct {
		Result []struct{ Metric map[string]string }
	}
	s.ask("query", url.Values{"query": {expr}}, &data)
	for _, one := range data.Result {
		all = append(all, one.Metric)
	}
	return all
}

// until asks again and again, for a minute at most, as Prometheus scrapes and evaluates when it does.
func (s *server) until(what string, done func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatal(what)
		}
	}
}

// runs are the trainings that series tell of.
func runs(series []map[string]string) []string {
	names := map[string]bool{}
	for _, labels := range series {
		names[labels["run"]] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Two trainings of one scrape job stay two, in metrics, rules and the dashboard, whatever labels Prometheus adds; and
// it reaches a node by TLS and a token file.
func TestScrape(t *testing.T) {
	n := startNode(t)
	n.train("one")
	n.train("two")
	s := startServer(t, n)
	both := []string{"one", "two"}
	s.until("the node is not scraped", func() bool { return slices.Equal(runs(s.series("feedwater_job_gpus")), both) })
	if renamed := s.series(`{__name__=~"feedwater_.+",exported_job=~".+"} or {__name__=~"feedwater_.+",exported_instance=~".+"}`); len(renamed) > 0 {
		t.Errorf("Prometheus had to rename labels of %v", renamed)
	}
	var values []string
	if s.ask("label/run/values", nil, &values); !slices.Equal(values, both) {
		t.Errorf("the variable run of the dashboard has %q", values)
	}
	s.until("not one alert for each training", func() bool {
		var data struct {
			Alerts []struct{ Labels map[string]string }
		}
		s.ask("alerts", nil, &data)
		var starving []map[string]string
		for _, a := range data.Alerts {
			if a.Labels["alertname"] == "FeedwaterGpusStarve" {
				starving = append(starving, a.Labels)
			}
		}
		return len(starving) == 2 && slices.Equal(runs(starving), both)
	})
	s.checkRules()
	s.checkDashboard(both)
}

// checkRules sees that each rule could be evaluated.
func (s *server) checkRules() {
	s.t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	s.ask("rules", nil, &data)
	if len(data.Groups) != 1 || len(data.Groups[0].Rules) < 5 {
		s.t.Errorf("rules: %+v", data)
		return
	}
	for _, r := range data.Groups[0].Rules {
		if r.Health != "ok" {
			s.t.Errorf("rule %s is %s: %s", r.Name, r.Health, r.LastError)
		}
	}
}

// checkDashboard asks what each panel asks: those by training have a line for each, those of nodes have one.
func (s *server) checkDashboard(names []string) {
	s.t.Helper()
	text, err := os.ReadFile("../grafana/feedwater.json")
	if err != nil {
		s.t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		s.t.Fatal(err)
	}
	unknown := []string{"DCGM_", "nodes_wanted"} // of another exporter; not known of a training so short
	asked := 0
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			if slices.ContainsFunc(unknown, func(s string) bool { return strings.Contains(target.Expr, s) }) {
				continue
			}
			asked++
			expr := strings.ReplaceAll(target.Expr, "$run", ".*")
			var got []map[string]string
			s.until(fmt.Sprintf("%s: nothing for %s", p.Title, expr), func() bool { got = s.series(expr); return len(got) > 0 })
			if strings.Contains(expr, "run") && !slices.Equal(runs(got), names) {
				s.t.Errorf("%s: %s has %v", p.Title, expr, got)
			}
		}
	}
	if asked < 15 {
		s.t.Errorf("the dashboard asks %d questions", asked)
	}
}

// scrape is /metrics of an address.
func (n *target) scrape(at string) []byte {
	n.t.Helper()
	text, err := os.ReadFile(n.ca)
	if err != nil {
		n.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	r, err := http.NewRequestWithContext(n.t.Context(), http.MethodGet, at+"/metrics", nil)
	if err != nil {
		n.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
	answer, err := c.Do(r)
	if err != nil {
		n.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if text, err = io.ReadAll(answer.Body); err != nil {
		n.t.Fatal(err)
	}
	return text
}

// What a node and a scaler tell has names as Prometheus wants them.
func TestMetricNames(t *testing.T) {
	n := startNode(t)
	n.train("one")
	scaler := begin(t, exec.CommandContext(t.Context(), os.Getenv("FEEDWATER_BINARY"), "scaler", "--nodes", "file:"+t.TempDir(), "--listen", "127.0.0.1:0",
		"--http", "127.0.0.1:0"), `msg=http addr=(\S+)`)[0]
	for name, text := range map[string][]byte{"node": n.scrape("https://" + n.http), "scaler": n.scrape("http://" + scaler)} {
		if !bytes.Contains(text, []byte("feedwater_"+name+"_info")) {
			t.Fatalf("%s: %s", name, text)
		}
		c := tool(t, "promtool", "check", "metrics")
		c.Stdin = bytes.NewReader(text)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("promtool check metrics, of a %s: %v\n%s", name, err, out)
		}
	}
}
