package membership

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// api is an API server of one namespace with one Service. Its replies are what a test says, one per request.
type api struct {
	*httptest.Server
	account string
	replies chan reply // unbuffered: a request has come when one is taken
}

// reply answers one request.
type reply struct {
	wants  string // a part of the request's query; "list" for one that does not watch
	token  string // empty: the usual one
	status int    // 0: OK
	body   string
	events <-chan string // further bodies, until it is closed; nil: none
}

const usualToken = "token-1"

func newAPI(t *testing.T) (*api, *kubernetes) {
	t.Helper()
	a := &api{account: t.TempDir(), replies: make(chan reply)}
	a.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case p := <-a.replies:
			p.give(t, w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(a.Close)
	a.trust(t)
	write(t, filepath.Join(a.account, "token"), usualToken+"\n")
	write(t, filepath.Join(a.account, "namespace"), "prod")
	yield := func(context.Context, time.Duration) {}
	return a, &kubernetes{"k8s:preproc:grpc", "", "preproc", "grpc", a.URL, a.account, yield}
}

// trust writes the server's certificate as the CA's, at once: somebody may be reading.
func (a *api) trust(t *testing.T) {
	t.Helper()
	path := filepath.Join(a.account, "ca.crt")
	write(t, path+".new", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw})))
	rename(t, path+".new", path)
}

func (p *reply) give(t *testing.T, w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	token := usualToken
	if p.token != "" {
		token = p.token
	}
	watching := q.Get("watch") == "1"
	switch {
	case r.URL.Path != "/apis/discovery.k8s.io/v1/namespaces/prod/endpointslices" || q.Get("labelSelector") != "kubernetes.io/service-name=preproc":
		t.Errorf("asked for %s", r.URL)
	case r.Header.Get("Authorization") != "Bearer "+token:
		t.Errorf("authorization %q, not %q", r.Header.Get("Authorization"), token)
	case watching && q.Get("allowWatchBookmarks") != "true", watching != (p.wants != "list"), watching && q.Get("resourceVersion") != p.wants:
		t.Errorf("query %s, not for %s", q.Encode(), p.wants)
	}
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	body := p.body
	for more := true; more; {
		_, _ = w.Write([]byte(body))
		_ = http.NewResponseController(w).Flush()
		if p.events == nil {
			return
		}
		select {
		case body, more = <-p.events:
		case <-r.Context().Done():
			return
		}
	}
}

// pod is an endpoint: conditions are written r, s and t, a capital for true, a small letter for false.
func pod(address, conditions string) string {
	var c []string
	for _, name := range []string{"ready", "serving", "terminating"} {
		for letter, value := range map[string]bool{name[:1]: false, strings.ToUpper(name[:1]): true} {
			if strings.Contains(conditions, letter) {
				c = append(c, fmt.Sprintf("%q: %v", name, value))
			}
		}
	}
	return fmt.Sprintf(`{"addresses": [%q], "conditions": {%s}}`, address, strings.Join(c, ", "))
}

func sliceOf(name, version string, pods ...string) string {
	return fmt.Sprintf(`{"metadata": {"name": %q, "resourceVersion": %q}, "addressType": "IPv4", "endpoints": [%s],
		"ports": [{"name": "http", "port": 7071, "protocol": "TCP"}, {"name": "grpc", "port": 7070, "protocol": "TCP"}]}`, name, version, strings.Join(pods, ", "))
}

func listOf(version string, slices ...string) string {
	return fmt.Sprintf(`{"kind": "EndpointSliceList", "metadata": {"resourceVersion": %q}, "items": [%s]}`, version, strings.Join(slices, ", "))
}

func event(kind, object string) string {
	return fmt.Sprintf(`{"type": %q, "object": %s}`+"\n", kind, object)
}

func bookmark(version string) string {
	return event("BOOKMARK", fmt.Sprintf(`{"kind": "EndpointSlice", "metadata": {"resourceVersion": %q}}`, version))
}

func TestKubernetesFollows(t *testing.T) {
	a, k := newAPI(t)
	answers := watch(t, k)
	a.replies <- reply{wants: "list", body: listOf("10", sliceOf("one", "9", pod("10.0.0.1", "RSt"), pod("10.0.0.2", "")))}
	if got := next(t, answers, "10.0.0.1:7070 10.0.0.2:7070"); got.ServerName != "preproc.prod.svc" {
		t.Errorf("certificates are made out to %q", got.ServerName)
	}
	events := make(chan string)
	a.replies <- reply{wants: "10", events: events}
	events <- event("ADDED", sliceOf("two", "11", pod("10.0.0.3", "RSt"), pod("10.0.0.4", "rst")))
	next(t, answers, "10.0.0.1:7070 10.0.0.2:7070 10.0.0.3:7070")
	events <- event("MODIFIED", sliceOf("one", "12", pod("10.0.0.1", "rST"), pod("10.0.0.2", "RST"), pod("10.0.0.5", "Rst")))
	next(t, answers, "10.0.0.3:7070 10.0.0.5:7070")
	events <- event("DELETED", sliceOf("two", "13"))
	next(t, answers, "10.0.0.5:7070")
	events <- bookmark("20")
	close(events) // in order: the watch goes on from the bookmark
	events = make(chan string)
	a.replies <- reply{wants: "20", events: events}
	events <- event("MODIFIED", sliceOf("one", "21"))
	next(t, answers, " but Service preproc in namespace prod has no pod that is ready")
	events <- event("MODIFIED", `{"metadata": {"name": "one", "resourceVersion": "22"}, "endpoints": null, "ports": null}`)
	events <- event("ERROR", `{"kind": "Status", "code": 410, "message": "too old resource version"}`)
	a.replies <- reply{wants: "list", body: listOf("30", sliceOf("one", "29", pod("10.0.0.7", "RSt")))}
	next(t, answers, "10.0.0.7:7070")
	a.replies <- reply{wants: "30", status: http.StatusGone}
	a.replies <- reply{wants: "list", body: listOf("40", sliceOf("one", "39", pod("10.0.0.8", "RSt")))}
	next(t, answers, "10.0.0.8:7070")
}

// What ends a watch, and a list that fails, is got over; what was known is not taken back.
func TestKubernetesReconnects(t *testing.T) {
	a, k := newAPI(t)
	answers := watch(t, k)
	list := reply{wants: "list", body: listOf("10", sliceOf("one", "9", pod("10.0.0.1", "RSt")))}
	a.replies <- reply{wants: "list", status: http.StatusServiceUnavailable}
	next(t, answers, "cannot tell: the API server says 503 Service Unavailable")
	a.replies <- list
	next(t, answers, "10.0.0.1:7070")
	a.replies <- reply{wants: "10", body: `{"type": "ADD`} // cut
	a.replies <- list
	a.replies <- reply{wants: "10", body: event("STRANGE", "{}")}
	a.replies <- reply{wants: "list", body: "<html>"}
	if got := text(<-answers); !strings.HasPrefix(got, "cannot tell: the API server's list") {
		t.Errorf("no list: %s", got)
	}
	a.replies <- list
	next(t, answers, "10.0.0.1:7070")
	held := make(chan string)
	a.replies <- reply{wants: "10", events: held}
	a.CloseClientConnections() // without a word
	a.replies <- reply{wants: "list", body: listOf("50", sliceOf("one", "49", pod("10.0.0.2", "RSt")))}
	next(t, answers, "10.0.0.2:7070")
}

// Tokens are read for each request and CAs for each round.
func TestKubernetesReadsItsFilesAgain(t *testing.T) {
	a, k := newAPI(t)
	if err := os.Remove(filepath.Join(a.account, "ca.crt")); err != nil {
		t.Fatal(err)
	}
	answers := watch(t, k)
	if got := text(<-answers); !strings.Contains(got, "ca.crt: no such file") {
		t.Errorf("without a CA: %s", got)
	}
	a.trust(t)
	a.replies <- reply{wants: "list", body: listOf("10")}
	next(t, answers, " but Service preproc in namespace prod has no pod that is ready")
	events := make(chan string)
	a.replies <- reply{wants: "10", events: events}
	write(t, filepath.Join(a.account, "token"), "token-2")
	close(events)
	a.replies <- reply{wants: "10", token: "token-2", status: http.StatusUnauthorized}
	a.replies <- reply{wants: "list", token: "token-2", status: http.StatusForbidden}
	if got := text(<-answers); !strings.Contains(got, "needs a Role with get, list and watch on endpointslices") {
		t.Errorf("not allowed: %s", got)
	}
}

func TestKubernetesTrustsItsCAAlone(t *testing.T) {
	a, k := newAPI(t)
	a.Config.ErrorLog = log.New(io.Discard, "", 0)
	k.server = strings.Replace(a.URL, "127.0.0.1", "localhost", 1) // a name that the certificate does not have
	answers := watch(t, k)
	if got := text(<-answers); !strings.Contains(got, "certificate") {
		t.Errorf("a server of another name: %s", got)
	}
}

func TestPorts(t *testing.T) {
	for _, c := range []struct{ slice, named, want string }{
		{`{"ports": [{"name": "", "port": 7070}]}`, "", "7070"},
		{`{"ports": [{"name": null, "port": 7070}]}`, "", "7070"},
		{`{"ports": [{"name": "grpc", "port": 7070}, {"name": "http", "port": 7071}]}`, "http", "7071"},
		{`{"ports": [{"name": "grpc", "port": 7070}, {"name": "http", "port": 7071}]}`, "", "has 2 ports"},
		{`{"ports": [{"name": "grpc", "port": 7070}]}`, "nope", `no port "nope"`},
		{`{"ports": null}`, "7070", "7070"},
		{`{}`, "", "has 0 ports"},
	} {
		var s endpointSlice
		if err := json.Unmarshal([]byte(c.slice), &s); err != nil {
			t.Fatal(err)
		}
		got, err := s.portOf(c.named)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s %q: %s", c.slice, c.named, got)
		}
	}
}

// Slices of both families are of the same pods.
func TestDualStack(t *testing.T) {
	six := strings.Replace(sliceOf("six", "1", pod("fd00::1", "RSt")), "IPv4", "IPv6", 1)
	names := strings.Replace(sliceOf("names", "1", pod("cpu-1.example.org", "RSt")), "IPv4", "FQDN", 1)
	all := endpointSlices{}
	for _, text := range []string{sliceOf("four", "1", pod("10.0.0.1", "RSt")), six, names} {
		var s endpointSlice
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		all[s.Metadata.Name] = &s
	}
	k := &kubernetes{service: "preproc", port: "grpc"}
	if got := strings.Join(all.toAnswer(k, "prod").Nodes, " "); got != "cpu-1.example.org:7070 10.0.0.1:7070" {
		t.Errorf("nodes %q", got)
	}
	delete(all, "four")
	if got := strings.Join(all.toAnswer(k, "prod").Nodes, " "); got != "cpu-1.example.org:7070 [fd00::1]:7070" {
		t.Errorf("nodes of IPv6 alone %q", got)
	}
}
