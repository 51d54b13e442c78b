package chart_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// program is Feedwater's, of this tree.
func program(t *testing.T) string {
	t.Helper()
	p := os.Getenv("FEEDWATER_BINARY")
	if p == "" {
		p = "../../../bin/feedwater"
	}
	if _, err := os.Stat(p); err != nil {
		t.Fatalf("make build first: %v", err)
	}
	return p
}

// room is a folder that has what a container would, and the paths of the container as they are here.
type room struct {
	dir   string
	paths *strings.Replacer
}

func newRoom(t *testing.T) *room {
	t.Helper()
	dir := t.TempDir()
	for _, below := range []string{"data/imagenet/train/c", "data/faces/c", "cache", "etc/tls", "etc/nodes", "etc/tokens", "etc/token", "etc/config"} {
		if err := os.MkdirAll(filepath.Join(dir, below), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cert, key := issue(t)
	for file, text := range map[string]string{
		"data/imagenet/train/c/1.png": "no picture, but listed", "data/faces/c/1.png": "neither",
		"etc/tls/tls.crt": cert, "etc/tls/ca.crt": cert, "etc/tls/tls.key": key, "etc/nodes/ca.crt": cert,
		"etc/tokens/tokens": "team-a 0123456789abcdef0123\n", "etc/token/token": "0123456789abcdef0123\n",
	} {
		put(t, filepath.Join(dir, file), text)
	}
	return &room{dir, strings.NewReplacer("/data/", dir+"/data/", "/var/cache/feedwater", dir+"/cache", "/etc/feedwater/", dir+"/etc/",
		": :70", ": 127.0.0.1:0 # ", "=:7072", "=127.0.0.1:0", "=:7071", "=127.0.0.1:0", "=:7073", "=127.0.0.1:0")}
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// issue is a certificate of its own making, and its key.
func issue(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"feedwater.prod.svc"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return text("CERTIFICATE", der), text("PRIVATE KEY", secret)
}

var healthAt = regexp.MustCompile(`health"?,?:?.*addr"?[=:]"?(127\.0\.0\.1:\d+)`)

// start runs a container's command until it is ready by its probes, and ends it as the kubelet does.
func (r *room) start(t *testing.T, c *corev1.Container) {
	t.Helper()
	var args []string
	for _, a := range c.Args {
		args = append(args, r.paths.Replace(a))
	}
	p := exec.Command(program(t), args...)
	p.Env = []string{
		"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=1", "HOME=/nonexistent",
		"AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret", // a pod has them of its secret
		"HTTPS_PROXY=http://127.0.0.1:1", // buckets and web servers cannot be reached from here
	}
	out, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Process.Kill() }()
	var log strings.Builder
	health, listening := "", false
	lines := bufio.NewScanner(out)
	for (health == "" || !listening) && lines.Scan() {
		fmt.Fprintln(&log, lines.Text())
		if m := healthAt.FindStringSubmatch(lines.Text()); m != nil && strings.Contains(lines.Text(), "health") && health == "" {
			health = m[1]
		}
		listening = listening || strings.Contains(lines.Text(), "listening")
	}
	if health == "" {
		t.Fatalf("%q has no probes: %s", args, &log)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() {
			fmt.Fprintln(&log, lines.Text())
		}
	}()
	probe(t, "http://"+health+c.LivenessProbe.HTTPGet.Path)
	probe(t, "http://"+health+c.ReadinessProbe.HTTPGet.Path)
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ended
	if err := p.Wait(); err != nil {
		t.Errorf("%q: %v\n%s", args, err, &log)
	}
}

// probe asks until the answer is 200, which the test's own deadline bounds.
func probe(t *testing.T, at string) {
	t.Helper()
	for {
		r, err := http.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if r.StatusCode == http.StatusOK {
			return
		}
	}
}

// The program takes what the containers tell it, becomes ready, and ends when it is told to.
func TestProgramTakesIt(t *testing.T) {
	eachFile(t, func(t *testing.T, all []any) {
		for _, d := range of[appsv1.Deployment](all) {
			r := newRoom(t)
			put(t, filepath.Join(r.dir, "etc/config/config.yaml"), r.paths.Replace(of[corev1.ConfigMap](all)[0].Data["config.yaml"]))
			r.start(t, &d.Spec.Template.Spec.Containers[0])
		}
	})
}

// notOffered are options of `feedwater serve` that the chart leaves alone: an index has its place, nodes need not announce themselves, and profiles
// and an unencrypted page beside TLS are for whoever is at the machine.
var notOffered = []string{"announce", "config", "help", "http-insecure", "index", "pprof"}

// Each option of `feedwater serve` is set by the chart, can be set in config, or is left alone on purpose.
func TestEveryOption(t *testing.T) {
	help, err := exec.Command(program(t), "serve", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	var options []string
	for _, m := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([\w-]+)`).FindAllStringSubmatch(string(help), -1) {
		options = append(options, m[1])
	}
	known := map[string]bool{}
	for _, name := range notOffered {
		known[name] = true
	}
	schema := read(t, filepath.Join(dir, "values.schema.json"))
	offered := schema["properties"].(map[string]any)["config"].(map[string]any)["properties"].(map[string]any)
	for name := range offered {
		known[name] = true
	}
	for _, file := range valueFiles(t) {
		for name := range config(t, objects(t, file)) {
			known[name] = true
		}
	}
	for _, name := range options {
		if !known[name] {
			t.Errorf("--%s: the chart cannot set it", name)
		}
		delete(known, name)
	}
	if len(options) < 20 || len(known) > 0 {
		t.Errorf("no options of the program: %q", slices.Sorted(maps.Keys(known)))
	}
}

// The chart is for the program of this tree.
func TestVersion(t *testing.T) {
	text, err := os.ReadFile("../../../python/feedwater/_version.py")
	if err != nil {
		t.Fatal(err)
	}
	of := read(t, filepath.Join(dir, "Chart.yaml"))
	if !strings.Contains(string(text), fmt.Sprintf("__version__ = %q", of["appVersion"])) {
		t.Errorf("appVersion is %v", of["appVersion"])
	}
}
