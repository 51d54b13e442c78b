package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/identities"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/audit"
)

// secureOptions are the flags of serve that say who may ask for what, and how that is kept from others.
type secureOptions struct {
	cert, key, clientCA string
	tokenFile           string
	insecure            bool
	httpInsecure        bool
	identities          identities.Map
	audit               string
}

func (o *secureOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.cert, "tls-cert", "", "`file` of the node's certificate, PEM: connections are TLS 1.3. Read again when it changes, as all such files")
	f.StringVar(&o.key, "tls-key", "", "`file` of its private key")
	f.StringVar(&o.clientCA, "client-ca", "", "`file` of the CAs of trainers' certificates: with it trainers have to show one, or a token")
	f.StringVar(&o.tokenFile, "token-file", "", "`file` of lines IDENTITY TOKEN: with it trainers have to show one, or a certificate")
	f.Var(&o.identities, "identities", "what each identity may do, as YAML; docs/configuration.md")
	f.BoolVar(&o.insecure, "insecure", false, "allow unencrypted connections from other machines")
	f.BoolVar(&o.httpInsecure, "http-insecure", false, "allow --http, which is not encrypted without --tls-cert, to other machines")
	f.StringVar(&o.audit, "audit", "", "`file` for a line of JSON per job, - for standard output")
}

// isRestricted reports whether trainers have to say who they are.
func (o *secureOptions) isRestricted() bool { return o.clientCA != "" || o.tokenFile != "" }

func (o *secureOptions) checkFlags(listen, http string, roots []string) error {
	local := isLocalAddress(listen)
	switch {
	case (o.cert == "") != (o.key == ""):
		return errors.New("--tls-cert and --tls-key go together")
	case o.clientCA != "" && o.cert == "":
		return errors.New("--client-ca is about TLS: give --tls-cert and --tls-key too")
	case o.insecure && o.cert != "":
		return errors.New("--insecure and --tls-cert contradict each other: leave one of them out")
	case o.tokenFile != "" && o.cert == "" && !local:
		return fmt.Errorf("--token-file with --listen %s: tokens go over TLS only; give --tls-cert and --tls-key, or listen on 127.0.0.1 or unix:/path", listen)
	case !o.insecure && o.cert == "" && !local:
		return fmt.Errorf("--listen %s is reachable from other machines and nothing is encrypted: give --tls-cert and --tls-key, listen on 127.0.0.1 or unix:/path, or allow it with --insecure", listen)
	case o.httpInsecure && o.cert != "":
		return errors.New("--http-insecure and --tls-cert contradict each other: --http is encrypted with the node's certificate; --health is the port for probes that know no TLS")
	case http != "" && o.cert == "" && !isLocalAddress(http) && o.tokenFile != "":
		return fmt.Errorf("--token-file with --http %s: tokens go over TLS only; give --tls-cert and --tls-key, or use 127.0.0.1", http)
	case http != "" && o.cert == "" && !isLocalAddress(http) && !o.insecure && !o.httpInsecure:
		return fmt.Errorf("--http %s is reachable from other machines and is not encrypted: give --tls-cert and --tls-key, use 127.0.0.1, or allow it with --http-insecure", http)
	case len(o.identities) > 0 && !o.isRestricted():
		return errors.New("identities say what each may do, but nobody has to say who he is: give --token-file, or --client-ca")
	}
	return o.identities.CheckRules(roots)
}

// security is what the flags come to.
type security struct {
	tls    *tls.Config // nil: plaintext
	access admission.Access
	audit  func(audit.Line)
}

// openSecurity reads the files. end is called when nothing more is written to the audit log.
func (o *secureOptions) openSecurity(ctx context.Context, stdout io.Writer, log *slog.Logger) (s security, end func(), err error) {
	waitFor := func(flag, file string) (answered func()) {
		return exitGuardOf(ctx).waitFor(flag+" "+file, logWait(log))
	}
	answered := waitFor("--tls-cert", o.cert)
	s.tls, err = o.newTLSConfig(log)
	if answered(); err != nil {
		return s, nil, err
	}
	answered = waitFor("--token-file", o.tokenFile)
	s.access, err = o.newAccess(log)
	if answered(); err != nil {
		return s, nil, err
	}
	answered = waitFor("--audit", o.audit)
	a, err := openAudit(o.audit, stdout, log)
	if answered(); err != nil {
		return s, nil, fmt.Errorf("--audit: %w", err)
	}
	if a == nil {
		return s, func() {}, nil
	}
	s.audit = a.writeLine
	return s, func() {
		defer waitFor("--audit", o.audit)()
		a.close()
	}, nil
}

func (o *secureOptions) newAccess(log *slog.Logger) (admission.Access, error) {
	a := admission.Access{Certificates: o.clientCA != "", Rules: o.identities.Rules()}
	if o.tokenFile == "" {
		return a, nil
	}
	var err error
	if a.Tokens, err = admission.ReadTokens(o.tokenFile, log); err != nil {
		return a, fmt.Errorf("--token-file: %w", err)
	}
	return a, nil
}

// newTLSConfig is the node's TLS; nil: plaintext.
func (o *secureOptions) newTLSConfig(log *slog.Logger) (*tls.Config, error) {
	if o.cert == "" {
		return nil, nil
	}
	files := admission.TLSFiles{Cert: o.cert, Key: o.key, ClientCA: o.clientCA, Optional: o.tokenFile != ""}
	c, err := files.Config(log)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key, --client-ca: %w", err)
	}
	return c, nil
}
