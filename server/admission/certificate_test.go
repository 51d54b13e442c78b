package admission_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// readPair is what a client with these files shows.
func readPair(t *testing.T, p servertest.Pair) []*x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(p.Cert, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	var all []*x509.Certificate
	for _, der := range pair.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

func poolOf(t *testing.T, a *servertest.Authority) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(a.File)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatal("no certificate")
	}
	return pool
}

// A connection may outlive the certificate that it began with, and the CA's (a day here).
func TestCertificatesEnd(t *testing.T) {
	ca, other := servertest.NewAuthority(t, "ca"), servertest.NewAuthority(t, "other")
	pool, foreign := poolOf(t, ca), poolOf(t, other)
	now := time.Now()
	for name, c := range map[string]struct {
		valid, after time.Duration
		pool         *x509.CertPool
		says         string
	}{
		"good":                {time.Hour, time.Minute, pool, ""},
		"its end has come":    {time.Hour, 61 * time.Minute, pool, "expired"},
		"that of its CA has":  {48 * time.Hour, 25 * time.Hour, pool, "expired"},
		"its CA was taken":    {time.Hour, time.Minute, foreign, "unknown authority"},
		"before that and now": {time.Hour, 61 * time.Minute, foreign, "certificate"},
	} {
		check := admission.CheckCertificate(readPair(t, ca.Issue("trainer", c.valid)))
		if err := check(pool, now); err != nil {
			t.Errorf("%s: at once: %v", name, err)
		}
		for range 2 { // the second answer is remembered
			if err := check(c.pool, now.Add(c.after)); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %q", name, err, c.says)
			}
		}
		if err := check(pool, now); err != nil && c.pool == foreign {
			t.Errorf("%s: after its CA was given back: %v", name, err)
		}
	}
}
