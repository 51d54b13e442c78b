package admission

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/feedwater-io/feedwater/filename"
)

// HTTPConfig is c, made by TLSFiles, for HTTP/1.1: the same files, read again when they change. A client may come
// without a certificate, for some paths are for everybody; one that it shows has to be good.
func HTTPConfig(c *tls.Config) *tls.Config {
	of := func(c *tls.Config) *tls.Config {
		c = c.Clone()
		c.NextProtos = []string{"http/1.1"}
		if c.ClientAuth == tls.RequireAndVerifyClientCert {
			c.ClientAuth = tls.VerifyClientCertIfGiven
		}
		return c
	}
	current := c.GetConfigForClient
	if current == nil {
		return of(c)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			now, err := current(hello)
			if err != nil || now == nil {
				return now, err
			}
			return of(now), nil
		},
	}
}

// ServeWatchers is h for those alone who may call Watch. They say who they are by a client certificate, by the header
// "Authorization: Bearer TOKEN", as Prometheus sends it, or by the token as the password of HTTP's Basic scheme, which
// browsers ask for. Others are answered 401, 403, or 429 when they call too often. CallerOf the request's context is who
// asks.
func (g *Guard) ServeWatchers(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := g.identifyVisitor(r)
		if err == nil {
			err = g.CheckWatch(c)
		}
		if err != nil {
			g.options.OnRefusal(c, fmt.Sprintf("HTTP %s %s", r.Method, filename.Brief(r.URL.Path)), err)
			g.refuseRequest(w, c, err)
			return
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
	})
}

// identifyVisitor finds who makes an HTTP request. The caller is there with an error, too, as far as it is known.
func (g *Guard) identifyVisitor(r *http.Request) (*Caller, error) {
	c := &Caller{Host: hostOfPort(r.RemoteAddr)}
	header := metadata.MD{}
	for _, v := range r.Header["Authorization"] {
		header.Append("authorization", v)
	}
	if _, password, ok := r.BasicAuth(); ok {
		header.Set("authorization", "Bearer "+password)
	}
	if err := g.identifyCaller(c, header, certificateOfRequest(r)); err != nil {
		return c, err
	}
	var err error
	if c.account, err = g.accounts.accountOf(c.Identity, c.Host, &g.options.Access); err != nil {
		return c, err
	}
	if !c.account.calls.Allow() {
		return c, &BusyError{Message: "too many requests at once", RetryAfter: time.Second}
	}
	return c, nil
}

// certificateOfRequest is the client certificate of a request's connection, if it has one with a name.
func certificateOfRequest(r *http.Request) *clientCertificate {
	if r.TLS == nil {
		return nil
	}
	shown, _ := attachCertificate(credentials.TLSInfo{State: *r.TLS}).(*clientCertificate)
	if shown == nil || shown.identityOf() == "" {
		return nil
	}
	return shown
}

// refuseRequest answers a request that may not be served.
func (g *Guard) refuseRequest(w http.ResponseWriter, c *Caller, err error) {
	code := http.StatusForbidden
	var busy *BusyError
	switch {
	case errors.As(err, &busy):
		code = http.StatusTooManyRequests
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(busy.RetryAfter.Seconds()))))
	case c.Identity == "":
		code = http.StatusUnauthorized
		if g.options.Access.Tokens != nil {
			w.Header().Add("WWW-Authenticate", `Bearer realm="feedwater"`)
			w.Header().Add("WWW-Authenticate", `Basic realm="feedwater: the token is the password", charset="UTF-8"`)
		}
	}
	http.Error(w, err.Error(), code)
}
