package membership

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount" // of every pod: ca.crt, namespace, token
	watchFor      = 5 * time.Minute                                 // the server ends a watch then
	answerWithin  = 30 * time.Second
	retryMin      = time.Second
	retryMax      = 30 * time.Second
	mostBytes     = 64 << 20 // of a list, and of all events of a watch
)

// kubernetes follows the EndpointSlices of one Service.
type kubernetes struct {
	target, namespace, service string
	port                       string // number or name; empty: the only one
	server                     string // of the API, https://host:port
	account                    string // folder of the service account's files
	pause                      func(context.Context, time.Duration)
}

const kubernetesForm = "write k8s:namespace/service:port; the namespace may be left out for the pod's own, and the port, a number or its name in the Service, where there is one alone"

func newKubernetes(target, rest string) (*kubernetes, error) {
	place, port, _ := strings.Cut(rest, ":")
	namespace, service, found := strings.Cut(place, "/")
	if !found {
		namespace, service = "", place
	}
	if service == "" || found && namespace == "" || strings.ContainsAny(service+port, "/: ") {
		return nil, &TargetError{target, "names no Service; " + kubernetesForm}
	}
	host := os.Getenv("KUBERNETES_SERVICE_HOST")
	if host == "" {
		return nil, &TargetError{target, "works within pods of a cluster alone (KUBERNETES_SERVICE_HOST is not set); elsewhere name nodes by dns:name:port or host:port"}
	}
	server := "https://" + net.JoinHostPort(host, os.Getenv("KUBERNETES_SERVICE_PORT"))
	return &kubernetes{target, namespace, service, port, server, accountFolder, pauseAround}, nil
}

// String implements Source.
func (k *kubernetes) String() string { return k.target }

// Watch implements Source. It goes in rounds: list, then watch for as long as the server lets it. Whatever ends a
// round, the next one reads the service account's files again.
func (k *kubernetes) Watch(ctx context.Context, tell func(Answer)) {
	t := &changeNotifier{tell: tell}
	delay := retryMin
	for ctx.Err() == nil {
		listed, err := k.listAndWatch(ctx, t)
		if ctx.Err() != nil {
			return
		}
		if listed {
			delay = retryMin
		} else {
			t.notifyChange(Answer{Err: err})
		}
		k.pause(ctx, delay)
		delay = min(2*delay, retryMax)
	}
}

// listAndWatch reports whether it got a list, and why it ended.
func (k *kubernetes) listAndWatch(ctx context.Context, t *changeNotifier) (listed bool, err error) {
	r, err := k.newRequest()
	if err != nil {
		return false, err
	}
	defer r.client.CloseIdleConnections()
	s, version, err := r.listSlices(ctx)
	if err != nil {
		return false, err
	}
	for {
		t.notifyChange(s.toAnswer(k, r.namespace))
		if version, err = r.watchSlices(ctx, s, version, func() { t.notifyChange(s.toAnswer(k, r.namespace)) }); err != nil {
			return true, err
		}
		k.pause(ctx, retryMin) // a proxy may end watches at once
	}
}

// request is what a round asks with.
type request struct {
	*kubernetes
	client    *http.Client
	namespace string
}

func (k *kubernetes) newRequest() (*request, error) {
	namespace := k.namespace
	if namespace == "" {
		text, err := os.ReadFile(filepath.Join(k.account, "namespace"))
		if err != nil {
			return nil, fmt.Errorf("the pod's namespace: %w; name it: k8s:namespace/%s", err, k.service)
		}
		namespace = strings.TrimSpace(string(text))
	}
	text, err := os.ReadFile(filepath.Join(k.account, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("the API server's CA: %w", err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("the API server's CA: %s/ca.crt holds no certificate", k.account)
	}
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: answerWithin, ResponseHeaderTimeout: answerWithin, ForceAttemptHTTP2: true,
	}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &request{k, &http.Client{Transport: transport, CheckRedirect: refuse}, namespace}, nil
}

// getSlices asks for the Service's slices. The token is read each time: it is replaced every hour or so. The caller
// closes the body.
func (r *request) getSlices(ctx context.Context, more url.Values) (io.ReadCloser, error) {
	token, err := os.ReadFile(filepath.Join(r.account, "token"))
	if err != nil {
		return nil, fmt.Errorf("the pod's token: %w; is automountServiceAccountToken off?", err)
	}
	more.Set("labelSelector", "kubernetes.io/service-name="+r.service)
	place := r.server + "/apis/discovery.k8s.io/v1/namespaces/" + url.PathEscape(r.namespace) + "/endpointslices?" + more.Encode()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return nil, err
	}
	q.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	q.Header.Set("Accept", "application/json")
	a, err := r.client.Do(q)
	if err != nil {
		return nil, err
	}
	if a.StatusCode == http.StatusOK {
		return a.Body, nil
	}
	_ = a.Body.Close()
	switch a.StatusCode {
	case http.StatusGone:
		return nil, errTooOld
	case http.StatusForbidden, http.StatusUnauthorized:
		return nil, fmt.Errorf("the API server says %s: the pod's service account needs a Role with get, list and watch on endpointslices of discovery.k8s.io in namespace %s", a.Status, r.namespace)
	}
	return nil, fmt.Errorf("the API server says %s", a.Status)
}

// errTooOld ends a round whose version the server has forgotten.
var errTooOld = errors.New("the API server does not remember that version")

// listSlices returns all slices, and the version to watch from.
func (r *request) listSlices(ctx context.Context) (endpointSlices, string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	body, err := r.getSlices(ctx, url.Values{})
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = body.Close() }()
	return readSlices(io.LimitReader(body, mostBytes))
}

// watchSlices applies changes to s until the server ends the watch, and returns the version to go on from. Any error
// ends the round.
func (r *request) watchSlices(ctx context.Context, s endpointSlices, version string, changed func()) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, watchFor+answerWithin) // a server that hangs
	defer cancel()
	body, err := r.getSlices(ctx, url.Values{
		"watch": {"1"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {version}, "timeoutSeconds": {fmt.Sprint(int(watchFor.Seconds()))},
	})
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	return s.followEvents(io.LimitReader(body, mostBytes), version, changed)
}

// toAnswer is the addresses of all endpoints. Their certificates are made out to the Service.
func (s endpointSlices) toAnswer(k *kubernetes, namespace string) Answer {
	a := Answer{Nodes: []string{}, ServerName: k.service + "." + namespace + ".svc"}
	byPort := map[string][]netip.Addr{}
	for _, one := range s {
		if len(one.Endpoints) == 0 { // a Service without pods has a slice without ports
			continue
		}
		port, err := one.portOf(k.port)
		if err != nil {
			a.Err = err
			continue
		}
		for _, e := range one.Endpoints {
			if !e.acceptsStreams() || len(e.Addresses) == 0 {
				continue
			}
			host := e.Addresses[0] // all stand for the same pod
			if ip, err := netip.ParseAddr(host); err == nil {
				byPort[port] = append(byPort[port], ip)
			} else {
				a.Nodes = append(a.Nodes, net.JoinHostPort(host, port))
			}
		}
	}
	for port, ips := range byPort {
		a.Nodes = append(a.Nodes, joinPort(oneFamily(ips), port)...)
	}
	switch {
	case len(a.Nodes) > 0:
	case a.Err != nil:
		a.Nodes = nil
	default:
		a.Err = fmt.Errorf("Service %s in namespace %s has no pod that is ready", k.service, namespace) //nolint:staticcheck // a name
	}
	return a
}
