package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/feedwater-io/feedwater/client/membership"
	"github.com/feedwater-io/feedwater/scaler"
	"github.com/feedwater-io/feedwater/server/admission"
)

// scalerEnv names the scaler that a trainer asks for nodes while there is none.
const scalerEnv = "FEEDWATER_SCALER"

// scalerOptions are the flags of `feedwater scaler`.
type scalerOptions struct {
	listen    string
	cert, key string // shown to KEDA and trainers
	http      string // encrypted as listen is
	health    string
	nodes     []string
	reach     reachOptions
	logOptions

	list    *membership.List
	log     *slog.Logger
	trouble string // that was logged last
}

func newScaler() *cobra.Command {
	o := &scalerOptions{}
	c := &cobra.Command{
		Use:   "scaler --nodes HOST:PORT",
		Short: "Say how many nodes there should be: KEDA's external scaler",
		Long: `Says how many nodes would feed all jobs, to KEDA's triggers "external" and "external-push", by the metric nodes_wanted with target 1.

It watches the nodes that there are, which read it off what trainers tell them. They are named as for trainers: docs/nodes.md. Trainers that have ` + scalerEnv + `=HOST:PORT of the scaler in their environment ask it for the first node; they reach it
as they reach nodes, by TLS if that is how. Engines without KEDA read the same number at --http, path /wanted, as {"wanted": 7}; 503 says why it is not known. It keeps nothing: it can be restarted at any time, and run twice. docs/control.md says by which law it goes.`,
		Example: `  feedwater scaler --nodes dns:preproc:7070 --listen :7072 --insecure`,
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return o.runScaler(c.Context(), c.ErrOrStderr()) },
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:7072", "`address` to listen on: host:port, or :port for all networks")
	f.StringSliceVar(&o.nodes, "nodes", nil, "`nodes`: host:port, dns:name:port, dns+srv:name, file:path or k8s:namespace/service:port; more than once for more")
	f.StringVar(&o.cert, "listen-cert", "", "`file` of the scaler's own certificate, PEM: KEDA and trainers reach it by TLS 1.3")
	f.StringVar(&o.key, "listen-key", "", "`file` of its private key")
	f.StringVar(&o.http, "http", "", "`address` for /wanted, the number as JSON, /metrics, /livez and /readyz, encrypted if --listen is; none by default")
	f.StringVar(&o.health, "health", "", "`address` for /livez and /readyz alone, never encrypted: for probes; none by default")
	o.addTo(f)
	o.reach.addTo(f)
	f.Lookup("insecure").Usage = "allow unencrypted connections to and from other machines"
	addConfig(c, append(ownReach, "listen", "http", "health")...)
	return c
}

func (o *scalerOptions) checkFlags() error {
	o.nodes = splitNodes(o.nodes)
	if len(o.nodes) == 0 {
		return errors.New("nothing to watch: give --nodes HOST:PORT")
	}
	if err := checkAddress(o.listen); err != nil {
		return fmt.Errorf("--listen %s: %w", o.listen, err)
	}
	for flag, addr := range map[string]string{"http": o.http, "health": o.health} {
		if err := checkAddress(addr); addr != "" && err != nil {
			return fmt.Errorf("--%s %s: %w", flag, addr, err)
		}
	}
	switch {
	case (o.cert == "") != (o.key == ""):
		return errors.New("--listen-cert and --listen-key go together")
	case o.http != "" && o.cert == "" && !o.reach.insecure && !isLocalAddress(o.http):
		return fmt.Errorf("--http %s is reachable from other machines and is not encrypted: give --listen-cert and --listen-key, use 127.0.0.1, or allow it with --insecure", o.http)
	case o.cert == "" && !o.reach.insecure && !isLocalAddress(o.listen):
		return fmt.Errorf("--listen %s is reachable from other machines and nothing is encrypted: give --listen-cert and --listen-key, listen on 127.0.0.1, or allow it with --insecure", o.listen)
	}
	for _, addr := range o.nodes {
		if err := o.checkPlain(addr); err != nil && membership.CheckAddress(addr) == nil {
			return err
		}
	}
	var err error
	if o.list, err = membership.NewList(o.nodes); err != nil {
		return fmt.Errorf("--nodes %w", err)
	}
	return nil
}

// checkPlain refuses other machines, unless the network is said to be one's own.
func (o *scalerOptions) checkPlain(addr string) error {
	if o.reach.dialOptions().Files != nil || o.reach.insecure || isLocalAddress(addr) {
		return nil
	}
	return fmt.Errorf("--nodes %s is another machine and nothing is encrypted: give --tls-ca, or allow it with --insecure", addr)
}

// runScaler answers until ctx ends.
func (o *scalerOptions) runScaler(ctx context.Context, stderr io.Writer) error {
	if err := errors.Join(o.checkFlags(), o.logOptions.checkFlags()); err != nil {
		return usageError{err}
	}
	log := o.newLog(stderr)
	o.log = log
	warnOfEnvironment("scaler", log)
	s := scaler.New(scaler.Options{Nodes: o.listNodes, Dial: o.dialNode, Version: version, Log: log})
	shown, err := o.openSecurity(log)
	if err != nil {
		return err
	}
	defer onHangup(log, shown.reloadChanged)()
	ready := newReadiness()
	ready.addCheck(func() error { return admission.CheckOwnCertificate(shown.tls, time.Now()) }, log)
	stopWeb, err := o.serveWeb(ctx, s, shown, ready, log)
	if err != nil {
		return err
	}
	defer stopWeb()
	g := grpc.NewServer(grpc.Creds(shown.serverCredentials()))
	s.Register(g)
	healthpb.RegisterHealthServer(g, ready.node)
	reflection.Register(g)
	listener, err := openListener(ctx, o.listen)
	if err != nil {
		return err
	}
	log.Info("listening", "addr", addressOf(listener), "nodes", strings.Join(o.nodes, ","), "version", version)
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	running.Go(func() { o.list.Run(ctx) })
	running.Go(func() { s.Run(ctx) })
	running.Go(func() {
		<-ctx.Done()
		ready.setDraining()
		g.Stop() // KEDA's streams have no end
	})
	if err := g.Serve(listener); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// serveWeb serves --http and --health; stop ends both.
func (o *scalerOptions) serveWeb(ctx context.Context, s *scaler.Scaler, shown security, ready *readiness, log *slog.Logger) (stop func(), err error) {
	metrics, err := metricsHandler(s)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /wanted", s.ServeWanted)
	ready.addProbes(mux)
	stopHTTP, err := serveWeb(ctx, webPort{flag: "http", addr: o.http, tls: shown.tls, handler: mux}, log)
	if err != nil {
		return nil, err
	}
	stopHealth, err := ready.serveHealth(ctx, o.health, log)
	if err != nil {
		stopHTTP()
		return nil, err
	}
	return func() { stopHealth(); stopHTTP() }, nil
}

// openSecurity is what KEDA and trainers reach the scaler by.
func (o *scalerOptions) openSecurity(log *slog.Logger) (s security, err error) {
	if o.cert != "" {
		s.tls, err = admission.TLSFiles{Cert: o.cert, Key: o.key}.Config(log)
	}
	return s, err
}

func (s *security) serverCredentials() credentials.TransportCredentials {
	if s.tls == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(s.tls)
}

func (o *scalerOptions) dialNode(addr string) (*grpc.ClientConn, error) {
	if err := o.checkPlain(addr); err != nil {
		return nil, err
	}
	options, err := o.reach.dialOptions().GRPC(addr)
	if err != nil {
		return nil, err
	}
	return grpc.NewClient("passthrough:///"+addr, options...)
}

// listNodes lists the nodes that there are now. Names that stand for none are no error: there are no nodes yet.
func (o *scalerOptions) listNodes(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	all, err := o.list.Nodes(ctx)
	if err == nil {
		o.logTrouble()
	}
	return all, err
}

// logTrouble tells what keeps sources from listing nodes, unless that was told last.
func (o *scalerOptions) logTrouble() {
	text := ""
	if err := o.list.Trouble(); err != nil {
		text = err.Error()
	}
	if text != o.trouble && text != "" {
		o.log.Info("none or not all nodes are listed", "err", text)
	}
	o.trouble = text
}

// lookWithin is how long sources may take to answer at first.
const lookWithin = 5 * time.Second
