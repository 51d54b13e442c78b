package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
)

// HTTPConfig is c, made by TLSFiles, for HTTP/1.1: the same files, read again when they change. A client may come without a certificate, for
// some paths are for everybody; one that it shows has to be good.
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

// Watchers is h for those alone who may call Watch. They say who they are by a client certificate, by the header "Authorization: Bearer
// TOKEN", as Prometheus sends it, or by the token as the password of HTTP's Basic scheme, which browsers ask for. Others are answered 401,
// 403, or 429 when they call too often.
func (s *Server) Watchers(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := s.visitor(r)
		if err == nil {
			err = s.mayWatch(c)
		}
		if err != nil {
			s.audit.refused(c, fmt.Sprintf("HTTP %s %s", r.Method, brief(r.URL.Path)), err)
			s.turnAway(w, c, err)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// visitor is who makes an HTTP request. The caller is there with an error, too, as far as it is known.
func (s *Server) visitor(r *http.Request) (*caller, error) {
	c := &caller{host: hostOfPort(r.RemoteAddr)}
	header := metadata.MD{}
	for _, v := range r.Header["Authorization"] {
		header.Append("authorization", v)
	}
	if _, password, ok := r.BasicAuth(); ok {
		header.Set("authorization", "Bearer "+password)
	}
	if err := s.identify(c, header, shownTo(r)); err != nil {
		return c, err
	}
	var err error
	if c.account, err = s.accounts.of(c, &s.options.Access); err != nil {
		return c, err
	}
	if !c.account.calls.Allow() {
		return c, &BusyError{Message: "too many requests at once", RetryAfter: time.Second}
	}
	return c, nil
}

// shownTo is the client certificate of a request's connection, if it has one with a name.
func shownTo(r *http.Request) *certificate {
	if r.TLS == nil {
		return nil
	}
	shown, _ := withCertificate(credentials.TLSInfo{State: *r.TLS}).(*certificate)
	if shown == nil || shown.name() == "" {
		return nil
	}
	return shown
}

// turnAway answers a request that may not be served.
func (s *Server) turnAway(w http.ResponseWriter, c *caller, err error) {
	code := http.StatusForbidden
	var busy *BusyError
	switch {
	case errors.As(err, &busy):
		code = http.StatusTooManyRequests
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(busy.RetryAfter.Seconds()))))
	case c.identity == "":
		code = http.StatusUnauthorized
		if s.options.Access.Tokens != nil {
			w.Header().Add("WWW-Authenticate", `Bearer realm="feedwater"`)
			w.Header().Add("WWW-Authenticate", `Basic realm="feedwater: the token is the password", charset="UTF-8"`)
		}
	}
	http.Error(w, err.Error(), code)
}
