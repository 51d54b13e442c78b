package admission

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// clientCertificate is what a client showed when its connection began. That may be days ago, so it is looked at again
// for each call: it has an end, and the CA that signed it may be trusted no longer.
type clientCertificate struct {
	credentials.TLSInfo

	mu   sync.Mutex
	cas  *x509.CertPool // by which err was found out
	ends time.Time      // of the chain that lasts longest; zero: not found out yet, or there is err
	err  error
}

// attachCertificate has a connection remember what was found out about the certificate that it began with, if there is
// one.
func attachCertificate(info credentials.AuthInfo) credentials.AuthInfo {
	t, ok := info.(credentials.TLSInfo)
	if !ok || len(t.State.VerifiedChains) == 0 || len(t.State.PeerCertificates) == 0 {
		return info
	}
	return &clientCertificate{TLSInfo: t}
}

// certificateOf is the client certificate of a call's connection, if it has one with a name.
func certificateOf(ctx context.Context) *clientCertificate {
	_, info := connOf(ctx)
	c, _ := info.(*clientCertificate)
	if c == nil || c.identityOf() == "" {
		return nil
	}
	return c
}

func (c *clientCertificate) identityOf() string { return identityOf(c.State.PeerCertificates[0]) }

// identifyCaller says who calls, if the certificate is good now.
func (c *clientCertificate) identifyCaller(who *Caller, cas *x509.CertPool, now time.Time) error {
	if err := c.checkAt(cas, now); err != nil {
		return &AccessError{Message: fmt.Sprintf("the client certificate of %q is good no longer: %v; connect again with another", c.identityOf(), err)}
	}
	who.Identity = c.identityOf()
	return nil
}

// checkAt verifies the certificate as the handshake did, at most once for each set of CAs while it lasts.
func (c *clientCertificate) checkAt(cas *x509.CertPool, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cas != cas || c.err == nil && now.After(c.ends) {
		c.cas = cas
		c.ends, c.err = verifyCertificate(c.State.PeerCertificates, cas, now)
	}
	return c.err
}

// verifyCertificate checks a client's certificate, with those between it and its CA behind it; ends is how long it
// stays as good.
func verifyCertificate(shown []*x509.Certificate, cas *x509.CertPool, now time.Time) (ends time.Time, err error) {
	between := x509.NewCertPool()
	for _, c := range shown[1:] {
		between.AddCert(c)
	}
	chains, err := shown[0].Verify(x509.VerifyOptions{
		Roots: cas, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	for _, chain := range chains {
		if end := endOfChain(chain); end.After(ends) {
			ends = end
		}
	}
	return ends, err
}

// endOfChain is when the first certificate of a chain ends.
func endOfChain(chain []*x509.Certificate) time.Time {
	end := chain[0].NotAfter
	for _, c := range chain[1:] {
		if c.NotAfter.Before(end) {
			end = c.NotAfter
		}
	}
	return end
}

// clientCAs are those that clients' certificates have to be signed by now, by the TLS of their port; another pool after
// each change of the files.
func clientCAs(config *tls.Config) *x509.CertPool {
	if config == nil {
		return nil
	}
	if config.GetConfigForClient != nil {
		if current, err := config.GetConfigForClient(&tls.ClientHelloInfo{}); err == nil && current != nil {
			config = current
		}
	}
	return config.ClientCAs
}
