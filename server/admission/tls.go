package admission

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"time"
)

// TLSFiles are what a node shows to trainers, and by what it knows them. All are PEM.
type TLSFiles struct {
	// Cert is the node's certificate, with those between it and its CA behind it; Key is its private key.
	Cert, Key string
	// ClientCA holds the CAs that sign trainers' certificates. Empty: none is asked for.
	ClientCA string
	// Optional lets trainers without a certificate in; one that is shown has to be good all the same.
	Optional bool
}

// Config is TLS 1.3 with these files. They are looked at again for each connection, so that certificates can be
// replaced while the node runs: connections go on with what they began with, new ones get the new files. Files that do
// not belong together change nothing, and log says so.
func (f TLSFiles) Config(log *slog.Logger) (*tls.Config, error) {
	current, err := openReloaded(log, f.loadFiles, f.Cert, f.Key, f.ClientCA)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return current.currentValue(), nil },
	}, nil
}

// CheckOwnCertificate says why trainers would refuse the certificate that new connections are shown now: its time, or that
// of one between it and its CA, has not begun or is over. Nil: they would not, or there is none.
func CheckOwnCertificate(config *tls.Config, now time.Time) error {
	if config == nil {
		return nil
	}
	if config.GetConfigForClient != nil {
		if current, err := config.GetConfigForClient(&tls.ClientHelloInfo{}); err == nil && current != nil {
			config = current
		}
	}
	for _, pair := range config.Certificates {
		for _, der := range pair.Certificate {
			c, err := x509.ParseCertificate(der)
			switch {
			case err != nil:
				return err
			case now.After(c.NotAfter):
				return fmt.Errorf("the certificate of %s ended at %s: renew it", c.Subject, c.NotAfter.UTC().Format(time.RFC3339))
			case now.Before(c.NotBefore):
				return fmt.Errorf("the certificate of %s is good from %s on; it is %s here", c.Subject, c.NotBefore.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
			}
		}
	}
	return nil
}

func (f TLSFiles) loadFiles() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s and key %s: %w", f.Cert, f.Key, err)
	}
	c := &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{pair},
		NextProtos:   []string{"h2"},
		// A resumed session would go on with what was checked before the files changed.
		SessionTicketsDisabled: true,
	}
	if f.ClientCA == "" {
		return c, nil
	}
	if c.ClientCAs, err = readPool(f.ClientCA); err != nil {
		return nil, err
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	if f.Optional {
		c.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return c, nil
}

// readPool reads a file of CAs.
func readPool(path string) (*x509.CertPool, error) {
	text, err := readSecret(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", path)
	}
	return pool, nil
}

// identityOf is the identity of a client certificate: its first URI (as SPIFFE writes one), else its common name, else
// its first DNS name.
func identityOf(c *x509.Certificate) string {
	switch {
	case len(c.URIs) > 0:
		return c.URIs[0].String()
	case c.Subject.CommonName != "":
		return c.Subject.CommonName
	case len(c.DNSNames) > 0:
		return c.DNSNames[0]
	}
	return ""
}
