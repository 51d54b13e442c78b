package servertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// TB is what of testing.TB is used here.
type TB interface {
	Helper()
	Fatal(args ...any)
	TempDir() string
}

// Authority is a CA for tests.
type Authority struct {
	t    TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// File holds its certificate.
	File string
}

// NewAuthority makes a CA that is valid for a day.
func NewAuthority(t TB, name string) *Authority {
	t.Helper()
	a := &Authority{t: t}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	a.key = a.newKey()
	a.File = filepath.Join(t.TempDir(), name+".pem")
	a.write(a.File, "CERTIFICATE", a.sign(a.cert, a.key))
	return a
}

// Pair are the files of a certificate and its key.
type Pair struct{ Cert, Key string }

// Issue makes a certificate for name, both a server's and a client's: valid from an hour ago until so much from now,
// for the machine itself and for hosts.
func (a *Authority) Issue(name string, valid time.Duration, hosts ...string) Pair {
	a.t.Helper()
	dir := a.t.TempDir()
	p := Pair{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	a.Renew(p, name, valid, hosts...)
	return p
}

// Renew writes another certificate in place of a pair's.
func (a *Authority) Renew(p Pair, name string, valid time.Duration, hosts ...string) {
	a.t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	a.must(err)
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: hosts,
		KeyUsage:  x509.KeyUsageDigitalSignature,
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(valid),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if len(hosts) == 0 {
		c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	key := a.newKey()
	der, err := x509.MarshalECPrivateKey(key)
	a.must(err)
	a.write(p.Key, "EC PRIVATE KEY", der)
	a.write(p.Cert, "CERTIFICATE", a.sign(c, key))
}

func (a *Authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.must(err)
	return key
}

func (a *Authority) sign(c *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	a.must(err)
	return der
}

// write replaces a file whole, as those who renew certificates do.
func (a *Authority) write(path, kind string, der []byte) {
	next := path + ".next"
	a.must(os.WriteFile(next, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	a.must(os.Rename(next, path))
}

func (a *Authority) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}
